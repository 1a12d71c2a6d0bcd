package signing

import "time"

// Linear returns the scheme of Linear's webhooks:
//
//	Linear-Signature: …
//
// which is the hex HMAC-SHA256 of the body, keyed by the text of the webhook's secret:
// read it with [ParseTextSecret].
//
// Replay defence: [TimeWindow], 60 seconds as Linear's own library has it. The time is
// the body's webhookTimestamp, in milliseconds: it can be looked at only after the
// whole body was read and its signature found to be right, and a body without one is
// [ErrNoTimestamp]. The id of the delivery is in the header Linear-Delivery, which no
// signature covers: it is [Facts].UnsignedID, and deduplication goes by the body.
//
// Source: https://linear.app/developers/webhooks#securing-webhooks and
// packages/sdk/src/webhooks/client.ts of github.com/linear/linear, against which it was
// read. Linear publishes no value and has no library for Go: this is not checked
// against Linear's own code.
func Linear() *Described {
	return describe(Description{
		Name:            "linear",
		SignatureHeader: "Linear-Signature",
		Signed:          "{body}",
		TimestampField:  "webhookTimestamp",
		TimestampFormat: UnixMillis,
		MaxTolerance:    time.Minute,
		IDHeader:        "Linear-Delivery",
		TypeField:       "type",
		TimeField:       "createdAt",
	})
}
