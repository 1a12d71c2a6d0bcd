package receiver_test

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/vendors"
)

const verifyToken = "a token that nobody guesses"

func ask(t *testing.T, h http.Handler, method, target string, header http.Header) *http.Response {
	t.Helper()
	req := httptest.NewRequest(method, target, strings.NewReader("{}"))
	for name, values := range header {
		req.Header[name] = values
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w.Result()
}

func bodyText(t *testing.T, r *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(text)
}

func hmacOf(key, text string) []byte {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// Each question gets its answer, by Handler and by the middleware, and nothing is stored.
func TestHandshakes(t *testing.T) {
	b, _ := onSQLite(t)
	token := "hub.mode=subscribe&hub.verify_token=" + url.QueryEscape(verifyToken)
	for what, c := range map[string]struct {
		handshake receiver.Handshake
		query     string
		status    int
		body      string
	}{
		"Meta":                     {receiver.Handshake{VerifyToken: verifyToken}, token + "&hub.challenge=1158201444", 200, "1158201444"},
		"Meta, wrong token":        {receiver.Handshake{VerifyToken: verifyToken}, "hub.mode=subscribe&hub.verify_token=x&hub.challenge=1", 401, ""},
		"Meta, no token":           {receiver.Handshake{VerifyToken: verifyToken}, "hub.mode=subscribe&hub.challenge=1", 401, ""},
		"Meta, another mode":       {receiver.Handshake{VerifyToken: verifyToken}, strings.Replace(token, "subscribe", "unsubscribe", 1) + "&hub.challenge=1", 401, ""},
		"Meta, token twice":        {receiver.Handshake{VerifyToken: verifyToken}, token + "&hub.verify_token=x&hub.challenge=1", 401, ""},
		"Meta, markup":             {receiver.Handshake{VerifyToken: verifyToken}, token + "&hub.challenge=<script>", 401, ""},
		"Meta, challenge twice":    {receiver.Handshake{VerifyToken: verifyToken}, token + "&hub.challenge=1&hub.challenge=2", 401, ""},
		"Meta, long":               {receiver.Handshake{VerifyToken: verifyToken}, token + "&hub.challenge=" + strings.Repeat("1", 257), 401, ""},
		"Meta, longest":            {receiver.Handshake{VerifyToken: verifyToken[:16]}, "hub.mode=subscribe&hub.verify_token=" + url.QueryEscape(verifyToken[:16]) + "&hub.challenge=" + strings.Repeat("1", 256), 200, strings.Repeat("1", 256)},
		"Meta, very long":          {receiver.Handshake{VerifyToken: verifyToken}, token + "&hub.challenge=" + strings.Repeat("1", 3000), 405, ""},
		"Meta, not set":            {receiver.Handshake{EchoChallenge: true}, token + "&hub.challenge=1", 405, ""},
		"Dropbox":                  {receiver.Handshake{EchoChallenge: true}, "challenge=aB3_-.~", 200, "aB3_-.~"},
		"Dropbox, markup":          {receiver.Handshake{EchoChallenge: true}, "challenge=%3Cb%3E", 401, ""},
		"Dropbox, empty":           {receiver.Handshake{EchoChallenge: true}, "challenge=", 401, ""},
		"Dropbox, line feed":       {receiver.Handshake{EchoChallenge: true}, "challenge=a%0Ab", 401, ""},
		"Dropbox, not set":         {receiver.Handshake{VerifyToken: verifyToken}, "challenge=a", 405, ""},
		"X":                        {receiver.Handshake{CRC: foreignSecret}, "crc_token=MTYwMTA0&nonce=1", 200, `{"response_token":"sha256=` + base64.StdEncoding.EncodeToString(hmacOf(foreignSecret.Reveal(), "MTYwMTA0")) + `"}`},
		"X, a body to be signed":   {receiver.Handshake{CRC: foreignSecret}, "crc_token=" + url.QueryEscape(`{"for_user_id":"1"}`), 401, ""},
		"X, a number to be signed": {receiver.Handshake{CRC: foreignSecret}, "crc_token=1601", 401, ""},
		"X, null":                  {receiver.Handshake{CRC: foreignSecret}, "crc_token=null", 401, ""},
		"X, a form to be signed":   {receiver.Handshake{CRC: foreignSecret}, "crc_token=a%26b", 401, ""},
		"X, empty":                 {receiver.Handshake{CRC: foreignSecret}, "crc_token=", 401, ""},
		"X, long":                  {receiver.Handshake{CRC: foreignSecret}, "crc_token=" + strings.Repeat("a", 257), 401, ""},
		"X, twice":                 {receiver.Handshake{CRC: foreignSecret}, "crc_token=a&crc_token=b", 401, ""},
		"X, not set":               {receiver.Handshake{EchoChallenge: true}, "crc_token=a", 405, ""},
		"no question":              {receiver.Handshake{VerifyToken: verifyToken}, "", 405, ""},
		"no query":                 {receiver.Handshake{EchoChallenge: true}, "challenge=%zz", 405, ""},
	} {
		rcv, err := receiver.New(githubVerifier(t), b.inTx, b.store, "x", &receiver.Config{Handshake: &c.handshake, Logger: new(buffer).logger()})
		require.NoError(t, err, what)
		before := b.rows(t)
		for _, h := range []http.Handler{rcv.Handler(receiver.State(b.effect)), rcv.WrapFact(http.NotFoundHandler())} {
			res := ask(t, h, http.MethodGet, "/hooks?"+c.query, nil)
			require.Equal(t, c.status, res.StatusCode, what)
			if c.status == 200 {
				require.Equal(t, c.body, bodyText(t, res), what)
				if !strings.HasPrefix(c.body, "{") {
					require.Equal(t, "text/plain; charset=utf-8", res.Header.Get("Content-Type"), what)
					require.Equal(t, "nosniff", res.Header.Get("X-Content-Type-Options"), what)
				}
			}
		}
		want := map[int][2]uint64{200: {2, 0}, 401: {0, 2}, 405: {0, 2}}[c.status]
		require.EqualValues(t, want[0], rcv.Stats().Challenged, what)
		require.EqualValues(t, want[1], rcv.Stats().Rejected, what)
		require.Equal(t, before, b.rows(t))
	}
}

// The questions that are no GET with a query, and what is set for them.
func TestHandshakesByMethodAndHeader(t *testing.T) {
	b, _ := onSQLite(t)
	const token = "Validation: Testing client application reachability for subscription Request-Id: 0f8fad5b-d9cb-469f-a165-70867728950e"
	graph, okta := receiver.Handshake{ValidationToken: true}, receiver.Handshake{OktaChallenge: true}
	events := receiver.Handshake{Origins: []string{"a.example.com", "eventemitter.example.com"}, Rate: 100}
	anyone := receiver.Handshake{Origins: []string{"*"}}
	origin := func(name string, more ...string) http.Header {
		h := http.Header{"Webhook-Request-Origin": {name}}
		if more != nil {
			h["Webhook-Request-Rate"] = more
		}
		return h
	}
	asked := func(values ...string) http.Header { return http.Header{"X-Okta-Verification-Challenge": values} }
	for what, c := range map[string]struct {
		handshake receiver.Handshake
		method    string
		query     string
		header    http.Header
		status    int
		body      string
		answer    http.Header
	}{
		"Graph":                      {graph, "POST", "validationToken=" + url.QueryEscape(token), nil, 200, token, http.Header{"Content-Type": {"text/plain; charset=utf-8"}, "X-Content-Type-Options": {"nosniff"}}},
		"Graph, markup":              {graph, "POST", "validationToken=%3Cscript%3Ealert(1)%3C/script%3E", nil, 401, "", nil},
		"Graph, a tag's begin":       {graph, "POST", "validationToken=a%3Cb", nil, 401, "", nil},
		"Graph, a tag's end":         {graph, "POST", "validationToken=a%3Eb", nil, 401, "", nil},
		"Graph, an entity":           {graph, "POST", "validationToken=a%26lt", nil, 401, "", nil},
		"Graph, a quote":             {graph, "POST", "validationToken=a%22b", nil, 401, "", nil},
		"Graph, a line feed":         {graph, "POST", "validationToken=a%0d%0aSet-Cookie:b", nil, 401, "", nil},
		"Graph, empty":               {graph, "POST", "validationToken=", nil, 401, "", nil},
		"Graph, twice":               {graph, "POST", "validationToken=a&validationToken=b", nil, 401, "", nil},
		"Graph, long":                {graph, "POST", "validationToken=" + strings.Repeat("a", 1025), nil, 401, "", nil},
		"Graph, very long":           {graph, "POST", "validationToken=" + strings.Repeat("a", 3000), nil, 415, "", nil},
		"Graph, an event":            {graph, "POST", "x=1", nil, 415, "", nil},
		"Graph, GET":                 {graph, "GET", "validationToken=a", nil, 405, "", nil},
		"Graph, not set":             {okta, "POST", "validationToken=a", nil, 415, "", nil},
		"Okta":                       {okta, "GET", "", asked("my verification challenge"), 200, `{"verification":"my verification challenge"}`, http.Header{"Content-Type": {"application/json"}, "X-Content-Type-Options": {"nosniff"}}},
		"Okta, lower case":           {okta, "GET", "", http.Header{"x-okta-verification-challenge": {"a"}}, 200, `{"verification":"a"}`, nil},
		"Okta, markup":               {okta, "GET", "", asked("</script>"), 401, "", nil},
		"Okta, twice":                {okta, "GET", "", asked("a", "b"), 401, "", nil},
		"Okta, empty":                {okta, "GET", "", asked(""), 401, "", nil},
		"Okta, long":                 {okta, "GET", "", asked(strings.Repeat("a", 257)), 401, "", nil},
		"Okta, POST":                 {okta, "POST", "", asked("a"), 415, "", nil},
		"Okta, no question":          {okta, "GET", "", nil, 405, "", nil},
		"Okta, not set":              {graph, "GET", "", asked("a"), 405, "", nil},
		"Trello":                     {receiver.Handshake{Head: true}, "HEAD", "", nil, 200, "", nil},
		"Trello, not set":            {graph, "HEAD", "", nil, 405, "", nil},
		"CloudEvents":                {events, "OPTIONS", "", origin("eventemitter.example.com", "120"), 200, "", http.Header{"Webhook-Allowed-Origin": {"eventemitter.example.com"}, "Webhook-Allowed-Rate": {"100"}, "Allow": {"POST"}}},
		"CloudEvents, slow":          {events, "OPTIONS", "", origin("A.example.com", "7"), 200, "", http.Header{"Webhook-Allowed-Origin": {"a.example.com"}, "Webhook-Allowed-Rate": {"7"}}},
		"CloudEvents, no rate":       {events, "OPTIONS", "", origin("a.example.com"), 200, "", http.Header{"Webhook-Allowed-Rate": {"100"}}},
		"CloudEvents, one a minute":  {receiver.Handshake{Origins: []string{"*"}, Rate: 1}, "OPTIONS", "", origin("x.example.org"), 200, "", http.Header{"Webhook-Allowed-Rate": {"1"}}},
		"CloudEvents, anyone":        {anyone, "OPTIONS", "", origin("x.example.org"), 200, "", http.Header{"Webhook-Allowed-Origin": {"*"}, "Webhook-Allowed-Rate": {"*"}}},
		"CloudEvents, anyone's rate": {anyone, "OPTIONS", "", origin("x.example.org", "5"), 200, "", http.Header{"Webhook-Allowed-Rate": {"5"}}},
		"CloudEvents, a stranger":    {events, "OPTIONS", "", origin("x.example.org", "1"), 401, "", nil},
		"CloudEvents, rate 0":        {events, "OPTIONS", "", origin("a.example.com", "0"), 401, "", nil},
		"CloudEvents, no number":     {events, "OPTIONS", "", origin("a.example.com", "x"), 401, "", nil},
		"CloudEvents, rate twice":    {events, "OPTIONS", "", origin("a.example.com", "1", "2"), 401, "", nil},
		"CloudEvents, twice":         {anyone, "OPTIONS", "", http.Header{"Webhook-Request-Origin": {"a", "b"}}, 401, "", nil},
		"CloudEvents, a browser's":   {anyone, "OPTIONS", "", http.Header{"Origin": {"https://example.com"}}, 405, "", nil},
		"CloudEvents, not set":       {graph, "OPTIONS", "", origin("a.example.com"), 405, "", nil},
	} {
		rcv, err := receiver.New(githubVerifier(t), b.inTx, b.store, "x", &receiver.Config{Handshake: &c.handshake, Logger: new(buffer).logger()})
		require.NoError(t, err, what)
		before := b.rows(t)
		res := ask(t, rcv.Handler(receiver.State(b.effect)), c.method, "/hooks?"+c.query, c.header)
		require.Equal(t, c.status, res.StatusCode, what)
		for name := range c.answer {
			require.Equal(t, c.answer[name], res.Header[name], what)
		}
		text := bodyText(t, res)
		if c.status == 200 {
			require.Equal(t, c.body, text, what)
			require.EqualValues(t, 1, rcv.Stats().Challenged, what)
		} else {
			require.NotContains(t, text, "script", what)
			require.Empty(t, res.Header["Webhook-Allowed-Origin"], what)
			require.Empty(t, res.Header["Set-Cookie"], what)
		}
		require.Equal(t, before, b.rows(t))
	}
}

func githubVerifier(t testing.TB) *signing.Verifier {
	t.Helper()
	keys, err := signing.NewKeyring(signing.Key{Secret: foreignSecret})
	require.NoError(t, err)
	v, err := signing.NewVerifier(keys, &signing.VerifierConfig{Schemes: []signing.Scheme{signing.GitHub()}, Deduplicated: true})
	require.NoError(t, err)
	return v
}

// Asana's secret is taken only if the application expects one.
func TestHookSecret(t *testing.T) {
	b, _ := onSQLite(t)
	const theirs = "asana-secret-of-32-characters-00"
	log := new(buffer)
	for what, c := range map[string]struct {
		header http.Header
		take   error
		status int
		asked  bool
	}{
		"expected":            {http.Header{"X-Hook-Secret": {theirs}}, nil, 200, true},
		"in any case":         {http.Header{"x-hook-secret": {theirs}}, nil, 200, true},
		"not expected":        {http.Header{"X-Hook-Secret": {theirs}}, errors.New("no webhook is made now"), 401, true},
		"short":               {http.Header{"X-Hook-Secret": {"short"}}, nil, 401, false},
		"twice":               {http.Header{"X-Hook-Secret": {theirs, theirs}}, nil, 401, false},
		"with a signature":    {http.Header{"X-Hook-Secret": {theirs}, "X-Hook-Signature": {"00"}}, nil, 400, false},
		"none":                {http.Header{"Content-Type": {"application/json"}}, nil, 400, false},
		"with a line feed in": {http.Header{"X-Hook-Secret": {theirs + "\n x"}}, nil, 401, false},
	} {
		asked := false
		rcv, err := receiver.New(githubVerifier(t), b.inTx, b.store, "x", &receiver.Config{Logger: log.logger(), Handshake: &receiver.Handshake{
			HookSecret: func(_ context.Context, m signing.Message, secret signing.Secret) error {
				asked = true
				require.Equal(t, "/hooks/7?x", m.URL)
				require.Equal(t, theirs, secret.Reveal())
				return c.take
			},
		}})
		require.NoError(t, err)
		c.header["Content-Type"] = []string{"application/json"}
		res := ask(t, rcv.Handler(receiver.State(b.effect)), http.MethodPost, "/hooks/7?x", c.header)
		require.Equal(t, c.status, res.StatusCode, what)
		require.Equal(t, c.asked, asked, what)
		if c.status == 200 {
			require.Equal(t, theirs, res.Header.Get("X-Hook-Secret"), what)
		} else {
			require.Empty(t, res.Header.Get("X-Hook-Secret"), what)
		}
	}
	require.NotContains(t, log.String(), theirs)
	rcv, err := receiver.New(githubVerifier(t), b.inTx, b.store, "x", &receiver.Config{Logger: log.logger(), Handshake: &receiver.Handshake{
		HookSecret: func(context.Context, signing.Message, signing.Secret) error { panic("oh") },
	}})
	require.NoError(t, err)
	res := ask(t, rcv.Handler(receiver.State(b.effect)), http.MethodPost, "/", http.Header{"X-Hook-Secret": {theirs}})
	require.Equal(t, 401, res.StatusCode)
}

func TestHandshakeIsChecked(t *testing.T) {
	b, _ := onSQLite(t)
	_, err := receiver.New(githubVerifier(t), b.inTx, b.store, "x", &receiver.Config{Handshake: &receiver.Handshake{VerifyToken: verifyToken[:15], CRC: foreignSecret, EchoChallenge: true}})
	require.ErrorContains(t, err, "VerifyToken has 15 bytes")
	require.ErrorContains(t, err, "set one")
	_, err = receiver.New(githubVerifier(t), b.inTx, b.store, "x", &receiver.Config{Handshake: &receiver.Handshake{Origins: []string{"a.example.com", "a b", ""}, Rate: -1}})
	require.ErrorContains(t, err, `Origins has "a b"`)
	require.ErrorContains(t, err, `Origins has ""`)
	require.ErrorContains(t, err, "Rate is -1")
	// A crc_token like user=admin is a form, and a text.
	for types, refused := range map[string]bool{"": false, "application/json application/Dwolla+JSON": false, "application/json application/x-www-form-urlencoded": true, "text/plain": true, "application/octet-stream": true} {
		for _, h := range []*receiver.Handshake{{CRC: foreignSecret}, {EchoChallenge: true}} {
			_, err = receiver.New(githubVerifier(t), b.inTx, b.store, "x", &receiver.Config{Handshake: h, Envelope: &receiver.Envelope{ContentTypes: strings.Fields(types)}})
			if refused && !h.EchoChallenge {
				require.ErrorContains(t, err, "CRC needs an Envelope.ContentTypes of JSON alone", types)
			} else {
				require.NoError(t, err, types)
			}
		}
	}
}

func FuzzHandshake(f *testing.F) {
	for _, query := range []string{"hub.mode=subscribe&hub.verify_token=x&hub.challenge=1", "challenge=a", "crc_token=abc", "crc_token=%7B%7D", "challenge=%0d%0a", "crc_token=1e5", "validationToken=Validation%3A+x", "validationToken=%3Cb%3E", "120", ""} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		for _, h := range []*receiver.Handshake{{VerifyToken: verifyToken}, {EchoChallenge: true}, {CRC: foreignSecret}} {
			a, is, err := h.Answer(t.Context(), signing.Message{Method: http.MethodGet, URL: "/?" + query})
			if !is || err != nil {
				continue
			}
			values, _ := url.ParseQuery(query)
			if h.VerifyToken != "" && values.Get("hub.verify_token") != verifyToken {
				t.Fatalf("%q is answered without the token", query)
			}
			if strings.ContainsAny(string(a.Body), "<>&\r\n") || len(a.Body) > 512 {
				t.Fatalf("%q is answered with %q", query, a.Body)
			}
			if h.CRC != (signing.Secret{}) && strings.ContainsAny(values.Get("crc_token"), `{[" `) {
				t.Fatalf("%q gets a signature of a body", query)
			}
		}
		// The same bytes where Graph, Okta and CloudEvents have theirs.
		h := &receiver.Handshake{ValidationToken: true, OktaChallenge: true, Origins: []string{"*"}}
		for _, m := range []signing.Message{
			{Method: http.MethodPost, URL: "/?" + query},
			{Method: http.MethodGet, Header: http.Header{"X-Okta-Verification-Challenge": {query}}},
			{Method: http.MethodOptions, Header: http.Header{"Webhook-Request-Origin": {query}, "Webhook-Request-Rate": {query}}},
		} {
			a, is, err := h.Answer(t.Context(), m)
			if is && err == nil && (strings.ContainsAny(string(a.Body), "<>&\r\n") || len(a.Body) > 1100 || strings.Contains(a.Header.Get("Content-Type"), "html") || a.Body != nil && a.Header.Get("X-Content-Type-Options") != "nosniff") {
				t.Fatalf("%q is answered with %q and %q", query, a.Header, a.Body)
			}
			for name, values := range a.Header {
				if strings.ContainsAny(values[0], "\r\n") {
					t.Fatalf("%q makes the header %s %q", query, name, values)
				}
			}
		}
	})
}

// Zoom's question is answered only if Zoom has signed it.
func TestZoom(t *testing.T) {
	b, _ := onSQLite(t)
	v, found := vendors.Find("zoom")
	require.True(t, found)
	scheme, err := v.Scheme("")
	require.NoError(t, err)
	envelope := receiver.VendorEnvelope(v)
	envelope.Challenge = receiver.ZoomChallenge(foreignSecret)
	rcv, _ := foreign(t, b, scheme, "zoom", receiver.Config{Envelope: envelope}, "")
	const body = `{"payload":{"plainToken":"qgg8vlvZRS6UYooatFL8Aw"},"event_ts":1654503849680,"event":"endpoint.url_validation"}`
	post := func(body, signedBody string) receiver.Answer {
		h := http.Header{"Content-Type": {"application/json"}}
		keys, err := signing.NewKeyring(signing.Key{Secret: foreignSecret})
		require.NoError(t, err)
		require.NoError(t, scheme.Sign(h, "", time.Now(), []byte(signedBody), keys))
		res, err := rcv.Receive(t.Context(), signing.Message{Method: "POST", Header: h, Body: []byte(body)}, receiver.Fact(b.effect))
		return receiver.AnswerTo(res, err)
	}
	a := post(body, body)
	require.Equal(t, 200, a.Status)
	require.JSONEq(t, fmt.Sprintf(`{"plainToken":"qgg8vlvZRS6UYooatFL8Aw","encryptedToken":"%s"}`, hex.EncodeToString(hmacOf(foreignSecret.Reveal(), "qgg8vlvZRS6UYooatFL8Aw"))), string(a.Body))
	require.Equal(t, 401, post(body, "{}").Status)
	const event = `{"payload":{"object":{"id":"7"}},"event":"meeting.started"}`
	require.JSONEq(t, `{"result":"applied"}`, string(post(event, event).Body))
}

// Twitch's question gets its text back, and its revocations are events of their own type.
func TestTwitch(t *testing.T) {
	b, _ := onSQLite(t)
	v, found := vendors.Find("twitch")
	require.True(t, found)
	scheme, err := v.Scheme("")
	require.NoError(t, err)
	var taken []receiver.Event
	rcv, snd := foreign(t, b, scheme, "twitch", receiver.Config{Envelope: receiver.VendorEnvelope(v)}, "")
	work := receiver.Fact(func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
		taken = append(taken, ev)
		return b.effect(ctx, tx, ev)
	})
	post := func(body string) receivertest.Answer {
		return snd.Raw(fmt.Sprintf("id-%d", len(body)), []byte(body)).Serve(rcv.Handler(work))
	}
	const subscription = `"subscription":{"id":"f1c2a387","status":"%s","type":"channel.follow"}`
	question := func(text string) string {
		return `{"challenge":` + text + `,` + fmt.Sprintf(subscription, "webhook_callback_verification_pending") + `}`
	}
	a := post(question(`"pogchamp-kappa-360noscope-vohiyo"`))
	require.Equal(t, 200, a.Status)
	require.Equal(t, "pogchamp-kappa-360noscope-vohiyo", string(a.Body))
	require.Equal(t, []string{"text/plain; charset=utf-8"}, a.Header["Content-Type"])
	require.Equal(t, []string{"nosniff"}, a.Header["X-Content-Type-Options"])
	require.Equal(t, "12345", string(post(question(`"12345"`)).Body), "also where the text is JSON")
	require.Equal(t, 400, post(question(`"<script>alert(1)</script>"`)).Status)
	require.Equal(t, 400, post(question(`"`+strings.Repeat("a", 257)+`"`)).Status)
	require.Zero(t, b.rows(t))
	for _, body := range []string{
		`{` + fmt.Sprintf(subscription, "enabled") + `,"event":{"user_id":"1337"}}`,
		`{` + fmt.Sprintf(subscription, "enabled") + `,"events":[{"id":"7"}]}`,
		`{` + fmt.Sprintf(subscription, "authorization_revoked") + `}`,
	} {
		require.JSONEq(t, `{"result":"applied"}`, string(post(body).Body))
	}
	require.Equal(t, "channel.follow", taken[0].Type)
	require.JSONEq(t, `{"user_id":"1337"}`, string(taken[0].Data))
	require.Equal(t, "channel.follow", taken[1].Type)
	require.JSONEq(t, `[{"id":"7"}]`, string(taken[1].Data))
	require.Equal(t, receiver.TwitchRevocation, taken[2].Type)
	require.Contains(t, string(taken[2].Data), "authorization_revoked")
}

// The envelope of a vendor finds the object and the version, and leaves out what has not the
// form of ours.
func TestVendorEnvelope(t *testing.T) {
	for _, c := range []struct {
		vendor, body string
		object       dedup.Object
		version      int64
	}{
		{"stripe", stripeBody, dedup.Object{}, 0},
		{"stripe", `{"data":{"object":{"id":"in_1","object":"invoice"}}}`, dedup.Object{Type: "invoice", ID: "in_1"}, 0},
		{"contentful", `{"sys":{"type":"Entry","id":"e1","revision":7}}`, dedup.Object{Type: "Entry", ID: "e1"}, 7},
		{"contentful", `{"sys":{"type":"Entry","id":"e1","revision":-7}}`, dedup.Object{Type: "Entry", ID: "e1"}, 0},
		{"jira", `{"issue":{"id":10001}}`, dedup.Object{Type: "issue", ID: "10001"}, 0},
		{"jira", `{"issue":{"id":1.5}}`, dedup.Object{}, 0},
		{"mailgun", `{"event-data":{"id":"x"}}`, dedup.Object{}, 0},
	} {
		v, found := vendors.Find(c.vendor)
		require.True(t, found)
		e := receiver.VendorEnvelope(v)
		require.Equal(t, v.DataField, e.DataField)
		ev := receiver.Event{Body: []byte(c.body)}
		if e.Read != nil {
			require.NoError(t, e.Read(&ev))
		}
		require.Equal(t, c.object, ev.Object, c.body)
		require.Equal(t, c.version, ev.Version, c.body)
	}
	b, _ := onSQLite(t)
	for _, v := range vendors.All() {
		_, err := receiver.New(githubVerifier(t), b.inTx, b.store, "x", &receiver.Config{Envelope: receiver.VendorEnvelope(v)})
		require.NoError(t, err, v.Name)
	}
	slack, _ := vendors.Find("slack")
	require.NotNil(t, receiver.VendorEnvelope(slack).Challenge)
	dwolla, _ := vendors.Find("dwolla")
	require.Contains(t, receiver.VendorEnvelope(dwolla).ContentTypes, "application/vnd.dwolla.v1.hal+json")
	pubsub, _ := vendors.Find("google-pubsub")
	read := receiver.VendorEnvelope(pubsub).Read
	for body, want := range map[string]string{
		`{"message":{"messageId":"207"},"deliveryAttempt":2}`: "207", `{"message":{"messageId":"a b"}}`: "sha256-id-c8687a08aa5d6ed2044328fa6a697ab8e96dc34291e8c2034ae8c38e6fcc6d65",
		`{"message":{}}`: "", `{"message":{"messageId":""}}`: "", `{"messageId":"1"}`: "", `{`: "",
	} {
		ev := receiver.Event{Body: []byte(body), ID: "sha256-0"}
		require.Equal(t, want == "", read(&ev) != nil, body)
		require.Equal(t, cmp.Or(want, "sha256-0"), ev.ID, body)
	}
}

// Two senders follow Standard Webhooks and name the type in their own way.
func TestVendorsOwnNameOfTheType(t *testing.T) {
	b, _ := onSQLite(t)
	for name, body := range map[string]string{
		"gitlab": `{"object_kind":"merge_request","event_type":"other","type":"another"}`,
		"brex":   `{"event_type":"merge_request"}`,
	} {
		v, _ := vendors.Find(name)
		scheme, err := v.Scheme("")
		require.NoError(t, err)
		rcv, snd := foreign(t, b, scheme, name, receiver.Config{Envelope: receiver.VendorEnvelope(v)}, "")
		ran := false
		work, err := receiver.Router(receiver.OnFact("merge_request", func(context.Context, *sql.Tx, receiver.Typed[any]) error {
			ran = true
			return nil
		}))
		require.NoError(t, err)
		require.Equal(t, receiver.Applied, snd.Raw("evt_1", []byte(body)).Serve(rcv.Handler(work)).Result, name)
		require.True(t, ran, name)
		require.Equal(t, receiver.Ignored, snd.Raw("evt_2", []byte(`{"type":"merge_request"}`)).Serve(rcv.Handler(work)).Result, name)
	}
}

// Keys can depend on the request with the scheme of every vendor.
func TestSecretsOfEveryVendor(t *testing.T) {
	for _, v := range vendors.All() {
		switch v.Kind {
		case vendors.SNS, vendors.PayPal, vendors.JWT, vendors.UnsignedToken, vendors.PlainHash: // others make their schemes
			continue
		}
		scheme, err := v.Scheme(map[bool]string{true: "https://example.com/x"}[v.NeedsURL()])
		require.NoError(t, err)
		_, err = receiver.NewSecrets(receiver.NameInPath, func(context.Context, string) (receiver.Keyholder, error) {
			return receiver.Keyholder{}, receiver.ErrUnknownKey
		}, &receiver.SecretsConfig{Verifier: signing.VerifierConfig{Schemes: []signing.Scheme{scheme}, Deduplicated: true, UnsignedBody: true}})
		require.NoError(t, err, v.Name)
	}
}
