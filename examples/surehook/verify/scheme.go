package verify

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/vendors"
)

// candidate is a scheme by which a request may have been signed.
type candidate struct {
	name    string
	header  string // the one with the signature; "" if it is in the body
	inBody  string // what a body with a signature has
	scheme  signing.Scheme
	vendor  vendors.Vendor // zero for schemes of this module's own
	others  []string       // further senders that sign in the same way
	refusal error          // what Precheck says
}

// candidates are the schemes whose signature header is in the request, of all that
// packages signing and vendors have. url is what a sender that signs it was told to post to.
func candidates(m signing.Message, url string) ([]candidate, error) {
	var present []candidate
	var problems []error
	for _, c := range all() {
		if c.header != "" && len(m.Header.Values(c.header)) == 0 && !anyOf(m.Header, c.vendor.Description.MoreSignatureHeaders) {
			continue
		}
		if c.scheme == nil {
			own := ""
			if c.vendor.NeedsURL() {
				own = url
			}
			var err error
			if c.scheme, err = c.vendor.Scheme(own); err != nil {
				problems = append(problems, err)
				continue
			}
		}
		c.refusal = c.scheme.Precheck(m.Header, time.Time{}, signing.DefaultTolerance)
		present = append(present, c)
	}
	if problems != nil {
		return nil, fmt.Errorf("the sender has signed the URL, too: give -url as it is registered there: %w", errors.Join(problems...))
	}
	return fitting(present, m), nil
}

// all are the schemes of this module's own and those of the vendors. Where several vendors
// have one scheme, it is there once. Nobody may change the list.
var all = sync.OnceValue(func() []candidate {
	list := []candidate{
		{name: "timestamp-body", header: "Webhook-Hmac-Sha256", scheme: signing.TimestampBody{}},
		{name: "hook0-body", header: "X-Hook0-Signature", scheme: signing.Hook0Body()},
	}
	shared := map[vendors.Kind]int{}
	for _, v := range sorted() {
		c := candidate{name: v.SchemeName(), header: v.Description.SignatureHeader, inBody: `"signature"`, vendor: v}
		switch v.Kind {
		case vendors.Standard, vendors.Svix:
			if i, there := shared[v.Kind]; there {
				list[i].others = append(list[i].others, v.Title)
				continue
			}
			shared[v.Kind] = len(list)
			c.header = map[vendors.Kind]string{vendors.Standard: "Webhook-Signature", vendors.Svix: "Svix-Signature"}[v.Kind]
		case vendors.Adyen, vendors.Braintree:
			c.inBody = map[vendors.Kind]string{vendors.Adyen: `"hmacSignature"`, vendors.Braintree: "bt_signature="}[v.Kind]
		case vendors.Twilio:
			c.header = "X-Twilio-Signature"
		case vendors.SNS, vendors.PayPal, vendors.JWT, vendors.UnsignedToken, vendors.PlainHash:
			continue // see whatIsCertified, whatIsToken and whatIsWeak
		}
		list = append(list, c)
	}
	return list
})

// sorted has the specification itself before those that follow it.
func sorted() (list []vendors.Vendor) {
	for _, name := range []string{"standard-webhooks", "svix"} {
		if v, found := vendors.Find(name); found {
			list = append(list, v)
		}
	}
	for _, v := range vendors.All() {
		if v.Name != "standard-webhooks" && v.Name != "svix" {
			list = append(list, v)
		}
	}
	return list
}

func anyOf(h http.Header, names []string) bool {
	for _, name := range names {
		if len(h.Values(name)) > 0 {
			return true
		}
	}
	return false
}

// fitting leaves out the schemes whose form a header has not, if it has the form of another
// one's, and a signature in the body where there is one in a header.
func fitting(present []candidate, m signing.Message) (left []candidate) {
	fits := map[string]bool{}
	inHeader := false
	for _, c := range present {
		well := !isHeaderError(c.refusal)
		fits[c.header] = fits[c.header] || well
		inHeader = inHeader || c.header != ""
	}
	for _, c := range present {
		switch {
		case c.header == "" && (inHeader || !strings.Contains(string(m.Body), c.inBody)):
		case c.header != "" && fits[c.header] && isHeaderError(c.refusal):
		default:
			left = append(left, c)
		}
	}
	return left
}

func isHeaderError(err error) bool {
	var header *signing.HeaderError
	return errors.As(err, &header)
}

// whatIsCertified explains why requests are not judged here whose keys must be fetched, or which
// have a scheme that only their receiver can make.
func whatIsCertified(h http.Header) string {
	switch {
	case len(h.Values("X-Amz-Sns-Message-Type")) > 0:
		return "this is a notification of Amazon SNS, whose signature is judged with a certificate of Amazon's: this command asks nobody, package signing/sns does"
	case len(h.Values("Paypal-Transmission-Sig")) > 0:
		return "this is a request of PayPal, whose signature is judged with a certificate of PayPal's: this command asks nobody, package signing/paypal does"
	case len(h.Values("Signature-Input")) > 0:
		return "this request has an HTTP Message Signature (RFC 9421), which says nothing by itself: make the scheme of package signing/httpsig that says which algorithm and which components count"
	}
	return ""
}

// whatIsToken explains why JSON Web Tokens are not judged here.
func whatIsToken(h http.Header) string {
	for _, v := range vendors.All() {
		name := v.Description.SignatureHeader
		if v.Kind != vendors.JWT || name == "Authorization" && strings.Count(h.Get(name), ".") != 2 || h.Get(name) == "" {
			continue
		}
		return fmt.Sprintf("the header %s has a JSON Web Token, which this command does not judge: package signing/jose does", name)
	}
	return ""
}

// whatIsWeak says so of a header that is no signature. It is not judged, so that nobody
// takes it for one.
func whatIsWeak(h http.Header) string {
	for _, v := range vendors.All() {
		d := v.Description
		weak := v.Kind == vendors.UnsignedToken || v.Kind == vendors.PlainHash
		if !weak || d.SignatureHeader == "" || d.SignatureHeader == "Authorization" || len(h.Values(d.SignatureHeader)) == 0 {
			continue
		}
		return fmt.Sprintf("the header %s is no signature but a token or a plain hash, which this command does not judge: see %s", d.SignatureHeader, v.Docs)
	}
	return ""
}

func signsURL(h http.Header) bool {
	for _, c := range all() {
		if c.vendor.NeedsURL() && len(h.Values(c.header)) > 0 {
			return true
		}
	}
	return false
}
