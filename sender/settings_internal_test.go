package sender

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var testLimits = settingsLimits{timeout: 10 * time.Second, proxies: []string{"eu", "us"}}

func TestSettingsThatAreFine(t *testing.T) {
	many := map[string]string{}
	for i := range maxHeaders {
		many[fmt.Sprintf("X-%d", i)] = "v"
	}
	for name, s := range map[string]Settings{
		"zero":        {},
		"headers":     {Headers: map[string]string{"Authorization": "Bearer a.b", "Cookie": "a=b; c=d", "x-tab": "a\tb", "X-Empty": "", "X-Text": "grün"}},
		"32 of them":  {Headers: many},
		"8 KiB":       {Headers: map[string]string{"X-Big": strings.Repeat("v", maxHeaderBytes-len("X-Big"))}},
		"least":       {MaxInFlight: 1, Rate: 0.001, Timeout: time.Second, Proxy: "eu"},
		"most":        {MaxInFlight: 1000, Rate: 10_000, Timeout: 10 * time.Second, Proxy: "us"},
		"in order":    {Order: OrderObject},
		"held least":  {Order: OrderObject, HoldTries: 1, HoldFor: time.Second, HoldDead: true},
		"held most":   {Order: OrderObject, HoldTries: 100, HoldFor: 30 * 24 * time.Hour},
		"the latest":  {Order: OrderLatest},
		"near misses": {Headers: map[string]string{"Web-Hook": "1", "Webhook": "1", "Proxied-By": "1", "X-Host": "1", "Hosting": "1"}},
	} {
		require.NoError(t, s.check(testLimits), name)
	}
}

func TestSettingsRefused(t *testing.T) {
	header := func(name, value string) Settings { return Settings{Headers: map[string]string{name: value}} }
	cases := map[string]struct {
		s    Settings
		says string
	}{
		"a name with a space":    {header("X Y", "hunter2"), "a header has a name that cannot be one"},
		"no name":                {header("", "hunter2"), "a header has a name that cannot be one"},
		"the header as the name": {header("Authorization: hunter2", ""), "a header has a name that cannot be one"},
		"a name beyond ASCII":    {header("X-Grün", "hunter2"), "a header has a name that cannot be one"},
		"CR":                     {header("X-A", "hunter2\rb"), `"X-A": its value has a control character at offset 7`},
		"LF":                     {header("X-A", "hunter2\nWebhook-Id: b"), "control character at offset 7"},
		"CR LF at the end":       {header("X-A", "hunter2\r\n"), "control character at offset 7"},
		"NUL":                    {header("X-A", "\x00"), "control character at offset 0"},
		"DEL":                    {header("X-A", "\x7f"), "control character"},
		"a C1 control":           {header("X-A", "\u0085"), "control character"},
		"not UTF-8":              {header("X-A", "\xff"), "valid UTF-8"},
		"twice":                  {Settings{Headers: map[string]string{"x-a": "1", "X-A": "2"}}, `"X-A" is given twice`},
		"8 KiB and one":          {header("X-Big", strings.Repeat("v", maxHeaderBytes-4)), "have 8193 bytes: at most 8192"},
		"in flight":              {Settings{MaxInFlight: 1001}, "max in flight is 1001: it must be from 1 to 1000"},
		"an order":               {Settings{Order: "strict"}, `the order is "strict": it must be "object" or "latest", or empty`},
		"hold tries":             {Settings{Order: OrderObject, HoldTries: 101}, "hold tries is 101: it must be from 1 to 100"},
		"hold for":               {Settings{Order: OrderObject, HoldFor: time.Millisecond}, "hold for is 1ms: it must be from 1s to 720h0m0s"},
		"held by no order":       {Settings{HoldDead: true}, `for the order "object" alone`},
		"held by the latest":     {Settings{Order: OrderLatest, HoldTries: 1}, `for the order "object" alone`},
		"in flight below 0":      {Settings{MaxInFlight: -1}, "max in flight is -1"},
		"rate":                   {Settings{Rate: 10_001}, "the rate is 10001: it must be from 0.001 to 10000"},
		"a small rate":           {Settings{Rate: 0.0009}, "the rate is"},
		"a rate below 0":         {Settings{Rate: -1}, "the rate is -1"},
		"no rate":                {Settings{Rate: math.NaN()}, "the rate is NaN"},
		"an endless rate":        {Settings{Rate: math.Inf(1)}, "the rate is +Inf"},
		"timeout":                {Settings{Timeout: 10*time.Second + 1}, "it must be from 1s to 10s"},
		"a short timeout":        {Settings{Timeout: time.Second - 1}, "the timeout is 999.999999ms"},
		"a timeout below 0":      {Settings{Timeout: -time.Second}, "the timeout is -1s"},
		"an unknown proxy":       {Settings{Proxy: "hunter2"}, "the proxy is not one that may be used here: these are eu, us"},
	}
	many := Settings{Headers: map[string]string{}}
	for i := range maxHeaders + 1 {
		many.Headers[fmt.Sprintf("X-%d", i)] = "v"
	}
	cases["33 headers"] = struct {
		s    Settings
		says string
	}{many, "there are 33 headers: at most 32"}
	for _, name := range []string{
		"Connection", "Keep-Alive", "Proxy-Authorization", "proxy-connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
		"Host", "Content-Length", "content-type", "Content-Encoding", "Expect", "User-Agent", "Date", "Accept-Encoding",
		"Idempotency-Key", "X-Idempotency-Key", "Webhook-Id", "webhook-anything", "WEBHOOK-SIGNATURE", "Webhook_Id", "content_length",
	} {
		cases[name] = struct {
			s    Settings
			says string
		}{header(name, "hunter2"), "is not yours to set"}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := c.s.check(testLimits)
			require.ErrorIs(t, err, ErrInvalid)
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), "hunter2")
			require.Equal(t, 1, strings.Count(err.Error(), ErrInvalid.Error()), "one problem, said once: %v", err)
		})
	}
	keys, err := NewKeys(SealingKey{ID: "1", Key: bytes.Repeat([]byte("1"), 32)})
	require.NoError(t, err)
	for _, excess := range []int{0, 1} { // a sealed value counts by the length of the sent value
		sealed := header("X-Big", strings.Repeat("v", maxHeaderBytes-len("X-Big")+excess))
		keys.sealHeaders("wsub_a", sealed.Headers)
		require.Equal(t, excess > 0, sealed.check(testLimits) != nil)
	}
	err = Settings{Headers: map[string]string{"Host": "a", "X-A": "\n"}, MaxInFlight: -1, Rate: -1, Timeout: -1, Proxy: "x"}.check(settingsLimits{})
	require.Equal(t, 6, strings.Count(err.Error(), ErrInvalid.Error()), "all at once: %v", err)
	require.ErrorContains(t, err, "there are none (RegistryConfig.Proxies)")
}

func TestSettingsNormalised(t *testing.T) {
	given := Settings{
		Headers: map[string]string{"x-api-key": " a b\t"}, MaxInFlight: 3, Rate: 1.5, Timeout: time.Second, Proxy: "eu",
		SealedCertificate: []byte("sealed"), RetryDelays: []time.Duration{time.Minute},
	}
	got := given.normalised()
	require.Equal(t, Settings{
		Headers: map[string]string{"X-Api-Key": "a b"}, MaxInFlight: 3, Rate: 1.5, Timeout: time.Second, Proxy: "eu",
		SealedCertificate: []byte("sealed"), RetryDelays: []time.Duration{time.Minute},
	}, got)
	given.Headers["x-api-key"], given.SealedCertificate[0], given.RetryDelays[0] = "changed", 'X', 0
	require.Equal(t, time.Minute, got.RetryDelays[0])
	require.Equal(t, "a b", got.Headers["X-Api-Key"], "a deep copy")
	require.Equal(t, "sealed", string(got.SealedCertificate))
	require.Equal(t, Settings{}, Settings{Headers: map[string]string{}, SealedCertificate: []byte{}, RetryDelays: []time.Duration{}}.normalised(), "one form of nothing")
}

// Settings and certificates keep the owner's secrets, whatever prints them.
func TestSettingsAndCertificatesKeepSecrets(t *testing.T) {
	s := Settings{
		Headers:           map[string]string{"Authorization": "hunter2", "X-Other": "hunter2", "Key: hunter2": ""},
		SealedCertificate: []byte("hunter2"),
	}
	c := ClientCertificate{CertificatePEM: []byte("hunter2"), KeyPEM: []byte("hunter2")}
	sub, asked, change := Subscription{Settings: s}, NewSubscription{Settings: s, ClientCertificate: &c}, SubscriptionChange{Settings: &s, ClientCertificate: &c}
	var log bytes.Buffer
	for _, logger := range []*slog.Logger{slog.New(slog.NewTextHandler(&log, nil)), slog.New(slog.NewJSONHandler(&log, nil))} {
		logger.Info("m", "settings", s, "pointer", &s, "certificate", c, "certificate_pointer", &c,
			"subscription", sub, "asked", asked, "change", change, "subscription_pointer", &sub, "asked_pointer", &asked, "change_pointer", &change)
	}
	printed := log.String()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		for _, v := range []any{
			s, &s, c, &c, sub, &sub, asked, &asked, change, &change,
			[]Settings{s}, []*Settings{&s}, []*ClientCertificate{&c}, []*Subscription{&sub}, []*NewSubscription{&asked}, []*SubscriptionChange{&change}, // fmt asks no pointer that is not on top, if the verb is not for it
		} {
			printed += fmt.Sprintf(verb, v) + "\n"
		}
	}
	printed += s.String() + c.String() + fmt.Sprint(errors.Join(s.check(testLimits)))
	for _, secret := range []string{"hunter2", fmt.Sprintf("%x", "hunter2"), fmt.Sprintf("%X", "hunter2"), "104 117 110"} {
		require.NotContains(t, printed, secret)
	}
	require.Contains(t, printed, "Authorization", "names are shown")
	require.Contains(t, printed, "certificate:true")

	stored, err := json.Marshal(s)
	require.NoError(t, err)
	var back Settings
	require.NoError(t, json.Unmarshal(stored, &back))
	require.Equal(t, s, back, "stores can encode them")
}

// Accepted headers arrive as they were given, each once and beside no other. A header that
// net/http would not send is refused.
func FuzzHeaders(f *testing.F) {
	f.Add("Authorization", "Bearer x")
	f.Add("X-A", "b\r\nWebhook-Id: c")
	f.Add("webhook_ID", "x")
	f.Add("Transfer-Encoding", "chunked")
	f.Add("user-agent", "x")
	f.Add("HOST", "x")
	f.Add("x-\u00e9", "k")
	f.Add("X-\u212a", "k")
	f.Add("x-tab", "a\tb\u0085")
	f.Add("Content-Length:", "0")
	f.Add("X-Sealed", "\x01AQ")
	f.Add("X-Sealed", " \x01AQ")
	keys, err := NewKeys(SealingKey{ID: "1", Key: bytes.Repeat([]byte("1"), 32)})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, name, value string) {
		s := Settings{Headers: map[string]string{name: value}}
		if s.check(settingsLimits{timeout: time.Second}) != nil || isSealed(value) {
			return
		}
		keys.sealHeaders("wsub_a", s.Headers)
		r := httptest.NewRequest(http.MethodPost, "http://endpoint/", nil)
		if r.Header, err = keys.Headers("wsub_a", s.Headers); err != nil {
			t.Fatal(err)
		}
		r.Header["User-Agent"] = []string{"surehook"}
		var wire bytes.Buffer
		if err := r.Write(&wire); err != nil {
			t.Fatalf("%q: %q is taken and cannot be sent: %v", name, value, err)
		}
		lines := strings.Split(strings.TrimSuffix(wire.String(), "\r\n\r\n"), "\r\n")
		want := http.CanonicalHeaderKey(name) + ": " + trimmed(value)
		if len(lines) != 5 || !slices.Contains(lines, want) && !slices.Contains(lines, strings.TrimSuffix(want, " ")) {
			t.Fatalf("%q: %q is sent as %q", name, value, lines)
		}
	})
}
