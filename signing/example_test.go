package signing_test

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/surehook/surehook/signing"
)

func ExampleNewVerifier() {
	secret, err := signing.ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		panic(err)
	}
	keys, err := signing.NewKeyring(signing.Key{ID: "2026", Secret: secret})
	if err != nil {
		panic(err)
	}
	verifier, err := signing.NewVerifier(keys, &signing.VerifierConfig{
		Now: func() time.Time { return time.Unix(1614265342, 0) }, // leave it out, for time.Now
	})
	if err != nil {
		panic(err)
	}

	header := http.Header{
		"Webhook-Timestamp":   {"1614265330"},
		"Webhook-Hmac-Sha256": {"2e37df5d4a028c51a7f3133d64ae1e300d2c2c900f1b1d49d4369ad2530f8964"},
	}
	if err := verifier.Precheck(header); err != nil { // before the body is read
		panic(err)
	}
	verified, err := verifier.Verify(signing.Message{Header: header, Body: []byte(`{"test": 2432232314}`)})
	fmt.Println(verified.KeyID, verified.Timestamp, err)

	_, err = verifier.Verify(signing.Message{Header: header, Body: []byte(`{"test": 1000000000}`)})
	fmt.Println(errors.Is(err, signing.ErrSignatureMismatch))
	// Output:
	// 2026 2021-02-25 15:02:10 +0000 UTC <nil>
	// true
}

func ExampleSign() {
	secret, err := signing.ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		panic(err)
	}
	keys, err := signing.NewKeyring(signing.Key{Secret: secret})
	if err != nil {
		panic(err)
	}

	header := http.Header{}
	body := []byte(`{"test": 2432232314}`)
	err = signing.Sign(header, signing.DefaultSchemes(), "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), body, keys)
	if err != nil {
		panic(err)
	}
	for _, name := range []string{"Webhook-Id", "Webhook-Timestamp", "Webhook-Hmac-Sha256", "Webhook-Signature"} {
		fmt.Println(name+":", header.Get(name))
	}
	// Output:
	// Webhook-Id: msg_p5jXN8AQM9LWM0D4loKWxJek
	// Webhook-Timestamp: 1614265330
	// Webhook-Hmac-Sha256: 2e37df5d4a028c51a7f3133d64ae1e300d2c2c900f1b1d49d4369ad2530f8964
	// Webhook-Signature: v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
}

// A rotation. From its start on, the sender signs with the new secret; for a day,
// Standard Webhooks' header has the previous one's signature too. A receiver that
// holds both secrets accepts all along, and learns which one was used.
func ExampleKeyring() {
	previous, current := signing.GenerateSecret(), signing.GenerateSecret()
	rotated := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	sender, err := signing.NewKeyring(
		signing.Key{ID: "previous", Secret: previous, NotAfter: rotated.Add(24 * time.Hour)},
		signing.Key{ID: "current", Secret: current, NotBefore: rotated},
	)
	if err != nil {
		panic(err)
	}
	receiver, err := signing.NewKeyring(
		signing.Key{ID: "previous", Secret: previous},
		signing.Key{ID: "current", Secret: current},
	)
	if err != nil {
		panic(err)
	}
	notYetTold, err := signing.NewKeyring(signing.Key{ID: "previous", Secret: previous})
	if err != nil {
		panic(err)
	}

	for _, hours := range []time.Duration{-1, 1, 25} {
		at := rotated.Add(hours * time.Hour)
		m := signing.Message{Header: http.Header{}, Body: []byte("{}")}
		if err := signing.Sign(m.Header, signing.DefaultSchemes(), "evt_1", at, m.Body, sender); err != nil {
			panic(err)
		}
		verified, err := signing.TimestampBody{}.Verify(m, receiver, at, signing.DefaultTolerance)
		if err != nil {
			panic(err)
		}
		_, err = signing.StandardWebhooks{}.Verify(m, notYetTold, at, signing.DefaultTolerance)
		fmt.Printf("%+3dh: signed with %s; with the previous secret alone: %v\n", int(hours), verified.KeyID, err)
	}
	// Output:
	//  -1h: signed with previous; with the previous secret alone: <nil>
	//  +1h: signed with current; with the previous secret alone: <nil>
	// +25h: signed with current; with the previous secret alone: signing: signature does not match
}

// A Secret can be logged by accident without harm.
func ExampleSecret() {
	secret, err := signing.ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		panic(err)
	}
	fmt.Printf("%v %+v\n", secret, struct{ Secret signing.Secret }{secret})

	_, err = signing.ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")
	fmt.Println(err)
	// Output:
	// [secret dd48c133] {Secret:[secret dd48c133]}
	// signing: invalid secret: there is white space or a control character at offset 38: give the secret alone
}
