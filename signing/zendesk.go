package signing

// Zendesk returns the scheme of Zendesk's webhooks:
//
//	X-Zendesk-Webhook-Signature-Timestamp: 2021-03-25T05:09:27Z
//	X-Zendesk-Webhook-Signature: EiqWE3SX…
//
// where the signature is the base64 HMAC-SHA256 of the timestamp and the body with nothing
// between them. The key is the text of the signing secret, which looks like base64 and is
// not decoded: read it with [ParseTextSecret]. There is one signature, so that while a
// secret is reset the receiver's keyring holds both.
//
// Replay defence: [TimeWindow]. An event's id, type and time are in the body. Requests of
// triggers and automations have the body that one has given them, and their [Facts] are
// empty unless it has the same fields.
//
// Source: https://developer.zendesk.com/documentation/webhooks/verifying/. This is not
// checked against Zendesk's own code. Zendesk has no library that verifies, and the value
// on an older page of its documentation is one for the body followed by the timestamp.
func Zendesk() *Described {
	return describe(Description{
		Name:            "zendesk",
		SignatureHeader: "X-Zendesk-Webhook-Signature",
		Encoding:        Base64,
		TimestampHeader: "X-Zendesk-Webhook-Signature-Timestamp",
		TimestampFormat: RFC3339Time,
		Signed:          "{timestamp}{body}",
		IDField:         "id",
		IDHeader:        "X-Zendesk-Webhook-Invocation-Id",
		TypeField:       "type",
		TimeField:       "time",
	})
}
