package signing

// Paddle returns the scheme of Paddle Billing's webhooks:
//
//	Paddle-Signature: ts=1710929255;h1=6c05ef8f…;h1=…
//
// where each h1 is the hex HMAC-SHA256 of "TIMESTAMP:BODY", keyed by the text of the
// notification's secret (pdl_ntfset_…): read it with [ParseTextSecret]. While a secret
// is rotated there is one h1 for each.
//
// Replay defence: [TimeWindow]. Paddle's own libraries allow 5 seconds, too little for
// clocks that nobody watches; the verifier's tolerance counts here. The event's id,
// type and time are in the body.
//
// Source: https://developer.paddle.com/webhooks/signature-verification, and a value from
// the tests of paddle-go-sdk, which also verifies the signatures of this scheme with one
// key. With two keys it does not, since it reads only one h1.
func Paddle() *Described {
	return describe(Description{
		Name:            "paddle",
		SignatureHeader: "Paddle-Signature",
		SignatureLabel:  "h1",
		Separator:       ';',
		TimestampLabel:  "ts",
		Signed:          "{timestamp}:{body}",
		SignWith:        EveryKey,
		IDField:         "event_id",
		TypeField:       "event_type",
		TimeField:       "occurred_at",
	})
}
