package verify

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	whsec   = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	textKey = "a text secret of some length"
	paddle  = "pdl_ntfset_01hsdn8d43dt7mezr1ef2jtbaw_hKkRiCGyyRhbFwIUuqiTBgI7gnWoV0Gr"
	discord = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8"
	signed  = "1800000000"
)

// verify runs the command with its secrets in a file, and holds every run to printing
// none of them.
func verify(t *testing.T, in string, secrets []string, args ...string) (code int, out string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secrets")
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(secrets, "\n")+"\n"), 0o600))
	code, out = run(append([]string{"-secret-file", file}, args...), in)
	for _, secret := range secrets {
		require.NotContains(t, out, strings.TrimSpace(secret))
	}
	return code, out
}

const (
	exitVerified = 0
	exitRefused  = 1
	exitUsage    = 2
)

// run does what the command does.
func run(args []string, in string) (code int, out string) {
	var o Options
	var said bytes.Buffer
	flags := flag.NewFlagSet("verify", flag.ContinueOnError)
	flags.SetOutput(&said)
	o.Flags(flags)
	err := flags.Parse(args)
	if err == nil {
		err = o.Check(func(string) string { return "" })
	}
	var r Report
	if err == nil {
		r, err = o.Request(flags.Arg(0), strings.NewReader(in))
	}
	if err != nil {
		return exitUsage, said.String() + err.Error()
	}
	r.Print(&said)
	if r.Verified {
		return exitVerified, said.String()
	}
	return exitRefused, said.String()
}

// One capture of each scheme. GitHub's, Slack's, Paddle's and Square's are
// values that they published; the others were signed by another implementation.
func TestVerifiesEachScheme(t *testing.T) {
	for _, c := range []struct{ file, secret, at, want string }{
		{"github.http", "It's a Secret to Everybody", signed, "github: verified"},
		{"slack.http", "8f742231b10e8888abcd99yyyzzz85a5", "2018-07-12T18:36:58Z", "slack: verified"},
		{"paddle.http", paddle, "1710929255", "paddle: verified"},
		{"shopify.http", textKey, signed, "shopify: verified"},
		{"square.http", "Ibxx_5AKakO-3qeNVR61Dw", signed, "square: verified"},
		{"standard-webhooks.http", whsec, signed, "standard-webhooks: verified"},
		{"standard-webhooks.http", whsec, signed, "timestamp-body: verified"},
		{"svix.curl", whsec, signed, "svix: verified"},
		{"stripe.http", whsec, signed, "stripe: verified"},
		{"twilio.curl", "12345678901234567890123456789012", signed, "twilio: verified"},
		{"zendesk.http", textKey, signed, "zendesk: verified"},
		{"linear.http", textKey, signed, "linear: verified"},
		{"convoy.http", textKey, signed, "convoy-advanced: verified"},
		{"hook0.http", textKey, signed, "hook0: verified"},
		{"discord.http", discord, signed, "discord: verified"},
	} {
		t.Run(c.want, func(t *testing.T) {
			code, out := verify(t, "", []string{"some other secret, of another sender", c.secret}, "-at", c.at, filepath.Join("testdata", c.file))
			require.Contains(t, out, c.want+"\n")
			require.Equal(t, exitVerified, code, out)
			require.Contains(t, out, "made with secret 2\n")
		})
	}
}

func TestSaysWhyNot(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(t, err)
		return string(text)
	}
	for name, c := range map[string]struct {
		in, secret, at string
		want           []string
	}{
		"re-serialised": {read("stripe-reserialised.http"), whsec, signed, []string{"stripe: refused", "parsed and serialised again"}},
		"too old":       {read("stripe.http"), whsec, "1800000301", []string{"5m1s behind the clock here", "it verifies with secret 1: -at 2027-01-15T08:00:00Z"}},
		"old and wrong": {read("stripe.http"), textKey, "1800000301", []string{"nor does it verify with secret 1 at its own time"}},
		"other secret":  {read("github.http"), textKey, signed, []string{"github: refused", "meta: refused", "no known mistake explains the signature"}},
		"pasted secret": {read("github.http"), textKey + " ", signed, []string{"secret 1 cannot be a secret of this scheme"}},
		"cut short":     {strings.TrimSuffix(read("github.http"), "!"), "It's a Secret to Everybody", signed, []string{"1 byte is missing", "github: refused"}},
		"unsigned":      {"POST / HTTP/1.1\r\nHost: x\r\n\r\n{}", whsec, signed, []string{"no header of the request carries a signature"}},
		"repeated": {strings.Replace(read("github.http"), "X-GitHub-Event", "X-Hub-Signature-256: sha256=00\r\nX-GitHub-Event", 1),
			"It's a Secret to Everybody", signed, []string{"is there 2 times"}},
		"no URL": {"POST /x HTTP/1.0\r\nX-Twilio-Signature: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n", textKey, signed, []string{"give -url as it is registered there"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, out := verify(t, c.in, []string{c.secret}, "-at", c.at)
			require.Equal(t, exitRefused, code, out)
			for _, want := range c.want {
				require.Contains(t, out, want)
			}
		})
	}
}

// Bytes that an editor adds behind the declared body are not a part of it.
func TestLeavesOutWhatFollowsTheBody(t *testing.T) {
	text, err := os.ReadFile("testdata/github.http")
	require.NoError(t, err)
	code, out := verify(t, string(text)+"\n", []string{"It's a Secret to Everybody"})
	require.Equal(t, exitVerified, code, out)
	require.Contains(t, out, "1 byte after the body's declared length is left out")
}

func TestURLOfItsOwn(t *testing.T) {
	text, err := os.ReadFile("testdata/square.http")
	require.NoError(t, err)
	moved := strings.Replace(string(text), "webhook.site", "10.0.0.7:8080", 1)
	secret := []string{"Ibxx_5AKakO-3qeNVR61Dw"}
	code, _ := verify(t, moved, secret)
	require.Equal(t, exitRefused, code)
	code, out := verify(t, moved, secret, "-url", "https://webhook.site/679a4f3a-dcfa-49ee-bac5-9d0edad886b9")
	require.Equal(t, exitVerified, code, out)
}

func TestSaysWhatItCannotRead(t *testing.T) {
	for name, c := range map[string]struct {
		in, want string
		args     []string
	}{
		"neither":         {"hello", "neither raw HTTP", nil},
		"no headers":      {"hello\nworld", "neither a curl command nor raw HTTP", nil},
		"open quote":      {"curl 'https://x", "a quotation mark is not closed", nil},
		"a variable":      {`curl https://x -d "$BODY"`, "a shell would replace", nil},
		"a pipe":          {"curl https://x | jq", "give one command alone", nil},
		"cmd":             {"curl ^\"https://x^\" ^\r\n  -H ^\"A: b^\" ^\r\n  --data-raw ^\"^{^}^\"", "Copy as cURL (bash)", nil},
		"cmd, older":      {"curl \"https://x\" ^\n  -H \"A: b\" ^\n  --data-raw \"{}\"", "Copy as cURL (bash)", nil},
		"an option":       {"curl https://x --next", "the option --next is not known", nil},
		"no value":        {"curl https://x -H", "the option -H has no value", nil},
		"no URL":          {"curl -d x", "has 0 URLs", nil},
		"no body file":    {"curl https://x -d @/nowhere", "/nowhere", nil},
		"an endless body": {"curl https://x -d @/dev/zero", "/dev/zero is larger than 32 MiB", nil},
		"a time":          {"", "it must be like 2026-01-31T12:00:00Z", []string{"-at", "noon"}},
		"no file":         {"", "no such file", []string{"nowhere.http"}},
		"tolerance":       {"", "less than a second", []string{"-tolerance", "1ms"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, out := verify(t, c.in, []string{whsec}, c.args...)
			require.Equal(t, exitUsage, code)
			require.Contains(t, out, c.want)
		})
	}
	code, out := run(nil, "")
	require.Equal(t, exitUsage, code)
	require.Contains(t, out, "there is no secret")
}
