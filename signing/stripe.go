package signing

// Stripe returns the scheme of Stripe's webhooks:
//
//	Stripe-Signature: t=1495999758,v1=6340…2091,v1=…
//
// where each v1 is the hex HMAC-SHA256 of "TIMESTAMP.BODY". The key is the text of
// the endpoint's secret as the dashboard shows it, whsec_ included: read it with
// [ParseTextSecret]. While a secret is rolled there is one v1 for each. The test
// mode's v0 counts for nothing.
//
// Replay defence: [TimeWindow], 300 seconds. The event's id, type and time are in the
// body. ElevenLabs signs likewise, with another header and v0: make that one with
// [NewDescribed] from this one's Description.
//
// Source: https://docs.stripe.com/webhooks#verify-manually. Stripe publishes no fixed
// value; what this signs is verified by stripe-go and the other way round.
func Stripe() *Described {
	return describe(Description{
		Name:            "stripe",
		SignatureHeader: "Stripe-Signature",
		SignatureLabel:  "v1",
		TimestampLabel:  "t",
		Signed:          "{timestamp}.{body}",
		SignWith:        EveryKey,
		IDField:         "id",
		TypeField:       "type",
		TimeField:       "created",
	})
}
