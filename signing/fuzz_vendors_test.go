package signing_test

import (
	"bytes"
	"testing"

	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/vendors"
)

// With the headers of a good request of any vendor, no other body verifies, unless the vendor
// does not sign what is other in it: then both are one event.
func FuzzBodiesOfVendors(f *testing.F) {
	all := vendorRequests(f)
	for i, r := range all {
		f.Add(uint8(i), r.m.Body)
		f.Add(uint8(i), append([]byte(" "), r.m.Body...))
	}
	for _, body := range []string{
		`{"notificationItems":[{"NotificationRequestItem":{"originalReference":null,"amount":{"value":1}}}]}`, `{"value":[{"clientState":""},7]}`,
		"bt_signature=a|b&bt_payload=PG5vdGlmaWNhdGlvbj4=", `{"data":{"id":"x"}}`, "[", "",
	} {
		for i, r := range all {
			if r.signed != nil || formKind(r.vendor) {
				f.Add(uint8(i), []byte(body))
			}
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		r := all[int(which)%len(all)]
		cfg := &signing.VerifierConfig{Schemes: []signing.Scheme{r.scheme}, Deduplicated: true, UnsignedBody: true, Now: at(now)}
		v, err := signing.NewVerifier(r.keys, cfg)
		if err != nil {
			t.Fatal(err)
		}
		_ = v.BodyFacts(body)
		m := r.m
		m.Body = body
		_, facts, err := v.VerifyFacts(m)
		if err != nil || bytes.Equal(body, r.m.Body) || r.vendor.Kind == vendors.UnsignedToken {
			return
		}
		_, original, err := v.VerifyFacts(r.m)
		if err != nil {
			t.Fatal(err)
		}
		one := facts.DedupKey() == original.DedupKey() || r.vendor.Kind == vendors.Twilio && sameForm(r.vendor, body, r.m.Body)
		if !one || !r.vendor.UnsignedBody() && !formKind(r.vendor) {
			t.Fatalf("%s takes %q", r.vendor.Name, body)
		}
	})
}
