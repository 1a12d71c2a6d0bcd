package verify

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing/vendors"
)

// The command names the vendor of each value that one has published.
func TestNamesTheVendor(t *testing.T) {
	text, err := os.ReadFile("../../../signing/testdata/known.json")
	require.NoError(t, err)
	var all []struct {
		Vendor, Secret, URL, Body string
		Header                    map[string]string
		At                        int64
	}
	require.NoError(t, json.Unmarshal(text, &all))
	named := map[string]bool{}
	for _, k := range all {
		v, found := vendors.Find(k.Vendor)
		require.True(t, found)
		if v.Kind == vendors.PlainHash {
			continue // what is weak is not judged
		}
		if _, err := v.Secret(k.Secret); err != nil {
			continue // shorter than those that the vendor issues
		}
		request := "POST /hooks HTTP/1.1\r\nHost: example.com\r\n"
		names := make([]string, 0, len(k.Header))
		for name := range k.Header {
			names = append(names, name)
		}
		sort.Strings(names)
		for _, name := range names {
			request += name + ": " + k.Header[name] + "\r\n"
		}
		request += fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(k.Body), k.Body)
		args := []string{"-at", fmt.Sprint(k.At)}
		if k.URL != "" {
			args = append(args, "-url", k.URL)
		}
		code, out := verify(t, request, []string{k.Secret}, args...)
		require.Equal(t, exitVerified, code, "%s: %s", k.Vendor, out)
		require.Contains(t, out, v.SchemeName()+": verified\n", k.Vendor)
		require.Contains(t, out, v.Title+" signs like that: "+v.Docs, k.Vendor)
		named[k.Vendor] = true

		code, out = verify(t, strings.Replace(request, k.Body, k.Body[:len(k.Body)-1]+"~", 1), []string{k.Secret}, args...)
		require.Equal(t, exitRefused, code, "%s: %s", k.Vendor, out)
		require.Contains(t, out, v.SchemeName()+": refused\n", k.Vendor)
		require.NotContains(t, out, "signs like that", k.Vendor)
	}
	require.Greater(t, len(named), 15)
}

func TestVendorsThatAreHardToName(t *testing.T) {
	// A header that several vendors have in different forms: only those whose form it has.
	code, out := verify(t, "POST / HTTP/1.1\r\nHost: x\r\nWebhook-Signature: 2693754819d3e32d7e8fcb13c729631f316c6de8dc1cf634d6527f1c07276e7e\r\n\r\n{}", []string{textKey})
	require.Equal(t, exitRefused, code)
	require.Contains(t, out, "gocardless: refused")
	require.NotContains(t, out, "cloudflare")
	require.NotContains(t, out, "standard-webhooks")

	// A signature in the body.
	const mailgun = `{"signature":{"timestamp":"1700000000","token":"t","signature":"` + "00" + `"},"event-data":{}}`
	code, out = verify(t, "POST / HTTP/1.1\r\nHost: x\r\n\r\n"+mailgun, []string{textKey}, "-at", "1700000000")
	require.Equal(t, exitRefused, code)
	require.Contains(t, out, "mailgun: refused")

	// One that cannot be judged without asking.
	code, out = verify(t, "POST / HTTP/1.1\r\nHost: x\r\nX-Amz-Sns-Message-Type: Notification\r\n\r\n{}", []string{textKey})
	require.Equal(t, exitRefused, code)
	require.Contains(t, out, "a notification of Amazon SNS")
	code, out = verify(t, "POST / HTTP/1.1\r\nHost: x\r\nPAYPAL-TRANSMISSION-SIG: AAAA\r\n\r\n{}", []string{textKey})
	require.Equal(t, exitRefused, code)
	require.Contains(t, out, "a request of PayPal")
	code, out = verify(t, "POST / HTTP/1.1\r\nHost: x\r\nSignature-Input: a=()\r\nSignature: a=::\r\n\r\n{}", []string{textKey})
	require.Equal(t, exitRefused, code)
	require.Contains(t, out, "an HTTP Message Signature")

	// These are no signatures.
	code, out = verify(t, "POST / HTTP/1.1\r\nHost: x\r\nX-Gitlab-Token: "+textKey+"\r\n\r\n{}", []string{textKey})
	require.Equal(t, exitRefused, code)
	require.Contains(t, out, "X-Gitlab-Token is no signature")
	require.NotContains(t, out, "verified")

	// A sender that follows Standard Webhooks is one of many.
	text, err := os.ReadFile("testdata/standard-webhooks.http")
	require.NoError(t, err)
	code, out = verify(t, string(text), []string{whsec}, "-at", signed)
	require.Equal(t, exitVerified, code, out)
	require.Contains(t, out, "and so do Brex, GitLab, with a signing token, OpenAI")
}

// A JSON Web Token is named, and not judged.
func TestNamesTokens(t *testing.T) {
	const token = "eyJhbGciOiJSUzI1NiJ9.e30.AA" //nolint:gosec // signed by nobody
	for header, says := range map[string]bool{
		"Authorization: Bearer " + token: true, "Authorization: JWT " + token: true, "Authorization: " + token: true, "Plaid-Verification: " + token: true,
		"MessageBird-Signature-JWT: " + token: true, "Authorization: Bearer abc": false, "Authorization: Basic YTpi": false,
	} {
		request := "POST /hooks HTTP/1.1\r\nHost: example.com\r\n" + header + "\r\nContent-Length: 2\r\n\r\n{}"
		code, out := verify(t, request, []string{"a secret of thirty-two letters!!"})
		require.NotEqual(t, exitVerified, code)
		require.Equal(t, says, strings.Contains(out, "has a JSON Web Token, which this command does not judge"), "%s: %s", header, out)
		require.NotContains(t, out, token)
	}
}
