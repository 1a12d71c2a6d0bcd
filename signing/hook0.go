package signing

// Hook0 returns the scheme v1 of Hook0's webhooks:
//
//	X-Hook0-Signature: t=1800000000,h=x-event-id x-event-type,v1=19a6fb8f…
//
// where v1 is the hex HMAC-SHA256 of "TIMESTAMP.NAMES.VALUES.BODY": the names of
// headers that h has, and their values joined by full stops. The key is the text of the
// subscription's secret: read it with [ParseTextSecret]. There is one secret; a second
// v1 beside the first, which Hook0's own libraries do not read, counts too.
//
// A header's value is verified if h names the header. Values that contain full stops blur
// where each value ends: only the end of the first one is certain, if it contains none
// itself. So X-Event-Id is [Verified].ID if h names it first, and UnsignedID otherwise.
//
// A v0 in the same header is ignored: [Hook0Body] is for senders that have no v1.
//
// Replay defence: [TimeWindow], 300 seconds.
//
// Source: https://documentation.hook0.com/tutorials/webhook-authentication, and the
// values in clients/conformance/signature.json of github.com/hook0/hook0.
func Hook0() *Described {
	return describe(Description{
		Name:            "hook0",
		SignatureHeader: "X-Hook0-Signature",
		SignatureLabel:  "v1",
		TimestampLabel:  "t",
		HeadersLabel:    "h",
		Signed:          "{timestamp}.{headers}.{body}",
		IDHeader:        "X-Event-Id",
		TypeHeader:      "X-Event-Type",
	})
}

// Hook0Body returns the older scheme v0 of Hook0's webhooks, in which the signature
// covers the time and the body alone, "TIMESTAMP.BODY", and no header. All else is as in
// [Hook0].
func Hook0Body() *Described {
	return describe(Description{
		Name:            "hook0-body",
		SignatureHeader: "X-Hook0-Signature",
		SignatureLabel:  "v0",
		TimestampLabel:  "t",
		Signed:          "{timestamp}.{body}",
		IDHeader:        "X-Event-Id",
		TypeHeader:      "X-Event-Type",
	})
}
