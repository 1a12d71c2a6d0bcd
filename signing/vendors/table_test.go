package vendors_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/vendors"
)

var update = flag.Bool("update", false, "write the table of docs/vendors.md anew")

const (
	page  = "../../docs/vendors.md"
	begin = "<!-- table: go test ./signing/vendors -update -->\n"
	end   = "<!-- end of the table -->\n"
)

// The table is what the data say, and the page lists every vendor.
func TestTable(t *testing.T) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), begin)
	require.True(t, found)
	_, after, found := strings.Cut(rest, end)
	require.True(t, found)
	want := before + begin + table() + end + after
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(text), "run go test ./signing/vendors -update")
}

func table() string {
	var b strings.Builder
	counts := map[vendors.Evidence]int{}
	for _, v := range vendors.All() {
		counts[v.Evidence]++
	}
	fmt.Fprintf(&b, "%d senders: %d entries were compared with a published value, %d with the vendor's library, and %d with neither.\n\n",
		len(vendors.All()), counts[vendors.Published], counts[vendors.Library], counts[vendors.Unverified])
	b.WriteString("| name | sender | signed | key | window | answer that it wants | without one it sends again | question | compared |\n")
	b.WriteString("| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, v := range vendors.All() {
		window := "none is signed"
		if v.SignsTime() {
			window = cmp.Or(short(v.Window), "5 min, ours")
		}
		evidence := v.Evidence.String()
		if v.Evidence == vendors.Unverified {
			evidence = "**unverified**"
		}
		if v.Read != "" {
			evidence += ", " + v.Read
		}
		fmt.Fprintf(&b, "| `%s` | [%s](%s) | %s | %s | %s | %s | %s | %s | %s |\n", v.Name, v.Title, v.Docs, signed(v), v.Key, window,
			v.Success, cmp.Or(v.Retries, "?"), v.Challenge, evidence)
	}
	b.WriteString("\n")
	for _, v := range vendors.All() {
		if v.Note != "" {
			fmt.Fprintf(&b, "- **%s**: %s\n", v.Title, v.Note)
		}
	}
	return b.String()
}

func short(d time.Duration) string {
	switch {
	case d == 0:
		return ""
	case d%time.Minute == 0:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d s", d/time.Second)
}

func signed(v vendors.Vendor) string {
	switch v.Kind {
	case vendors.Standard, vendors.Svix:
		return "`{id}.{timestamp}.{body}`"
	case vendors.Twilio:
		return "the URL and the form, or the body's digest"
	case vendors.Adyen:
		return "eight fields, joined by colons"
	case vendors.Braintree:
		return "the field bt_payload, SHA-1"
	case vendors.SNS:
		return "fields of the body"
	case vendors.PayPal:
		return "`{id}|{timestamp}|WEBHOOK|CRC-32`, RSA"
	case vendors.JWT:
		var parts []string
		if v.TokenSignsBody {
			parts = append(parts, "the body")
		}
		if v.TokenCovers != "" {
			parts = append(parts, v.TokenCovers)
		}
		return cmp.Or(strings.Join(parts, ", "), "**not the request**") + ", by a token"
	case vendors.UnsignedToken:
		return "**nothing**: it holds the secret"
	}
	text := "`" + strings.ReplaceAll(v.Description.Signed, "\n", "\\n") + "`"
	switch v.Description.Algorithm {
	case signing.HMACSHA1:
		text += ", SHA-1"
	case signing.PlainSHA256:
		text += ", **no HMAC**"
	case signing.HMACSHA512:
		text += ", SHA-512"
	case signing.Ed25519:
		text += ", Ed25519"
	case signing.ECDSAP256:
		text += ", ECDSA"
	}
	return text
}

// A caller may change an entry that it got: others do not see it.
func TestEntriesAreCopies(t *testing.T) {
	v, _ := vendors.Find("box")
	v.Description.MoreSignatureHeaders[0] = "X-Other"
	again, _ := vendors.Find("box")
	require.Equal(t, []string{"Box-Signature-Secondary"}, again.Description.MoreSignatureHeaders)
}

func ExampleFind() {
	v, _ := vendors.Find("hubspot")
	fmt.Println(v.Title, "signs", v.Description.Signed)
	fmt.Println(v.Retries)
	_, err := v.Scheme("")
	fmt.Println(err)
	// Output:
	// HubSpot, v3 signs {method}{url}{body}{timestamp}
	// up to 10 times over 24 h
	// vendors: HubSpot, v3 signs the URL that it sends to: give it letter by letter, as it is registered there
}
