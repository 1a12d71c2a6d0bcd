package signing

// Meta returns the scheme of Meta's webhooks (Facebook, Instagram, WhatsApp,
// Messenger):
//
//	X-Hub-Signature-256: sha256=…
//
// which is the hex HMAC-SHA256 of the body as it came. Meta escapes the characters beyond
// ASCII in it, so a body that was decoded and encoded again has other bytes. The key is
// the text of the app's secret: read it with [ParseTextSecret].
//
// Replay defence: [DedupAlone]. Everything rests on deduplication by the body: it has
// no id of the event, and the signature covers no time. The body's field object is
// the type.
//
// Source: https://developers.facebook.com/docs/graph-api/webhooks/getting-started#event-notifications.
// Meta publishes neither a value nor a library for Go: this is checked against
// go-github, whose sender signs in the same way, and not against Meta's own code.
func Meta() *Described {
	return describe(Description{
		Name:            "meta",
		SignatureHeader: "X-Hub-Signature-256",
		SignaturePrefix: "sha256=",
		Signed:          "{body}",
		TypeField:       "object",
	})
}
