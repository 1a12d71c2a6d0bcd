package httpsig_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/httpsig"
)

// A sender and a receiver who have agreed what is signed.
func ExampleNew() {
	scheme, err := httpsig.New(signing.HMACSHA256, []string{"@method", "@target-uri", "content-digest"}, &httpsig.Config{
		URL:       "https://example.com/webhooks",
		NeedKeyID: true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	secret, _ := signing.ParseSecret("correct-horse-battery-staple")
	keys, _ := signing.NewKeyring(signing.Key{ID: "key-2026", Secret: secret})
	m := signing.Message{Method: http.MethodPost, Header: http.Header{}, Body: []byte(`{"id":"evt_1"}`)}
	if err := scheme.Sign(m.Header, "evt_1", time.Now(), m.Body, keys); err != nil {
		fmt.Println(err)
		return
	}
	verifier, err := signing.NewVerifier(keys, &signing.VerifierConfig{Schemes: []signing.Scheme{scheme}})
	if err != nil {
		fmt.Println(err)
		return
	}
	verified, err := verifier.Verify(m)
	fmt.Println(verified.KeyID, err)
	m.Body = []byte(`{"id":"evt_2"}`)
	_, err = verifier.Verify(m)
	fmt.Println(err)
	// Output:
	// key-2026 <nil>
	// httpsig: signing: signature does not match: the body has another digest than the signed one
}
