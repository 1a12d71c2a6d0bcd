package signing

// NewSquare returns the scheme of Square's webhooks:
//
//	X-Square-Hmacsha256-Signature: GF4YkrJg…
//
// which is the base64 HMAC-SHA256 of the notification URL and the body, keyed by the
// text of the subscription's signature key: read it with [ParseTextSecret]. The URL is
// the one that is registered with Square, letter by letter.
//
// Replay defence: [DedupAlone]: the signature covers no time. Everything rests on
// deduplication, for which the event's id is in the body, with its type and time.
//
// Source: https://developer.squareup.com/docs/webhooks/step3validate, and values from
// the tests of square-nodejs-sdk.
func NewSquare(notificationURL string) (*Described, error) {
	return NewDescribed(Description{
		Name:            "square",
		SignatureHeader: "X-Square-Hmacsha256-Signature",
		Encoding:        Base64,
		Signed:          "{url}{body}",
		URL:             notificationURL,
		IDField:         "event_id",
		TypeField:       "type",
		TimeField:       "created_at",
	})
}
