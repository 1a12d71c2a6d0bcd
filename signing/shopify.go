package signing

// Shopify returns the scheme of Shopify's webhooks:
//
//	X-Shopify-Hmac-Sha256: B23tXN68…
//
// which is the base64 HMAC-SHA256 of the body, keyed by the text of the app's client
// secret: read it with [ParseTextSecret]. Shopify signs with the oldest secret that is
// not revoked, so that after a rotation the receiver's keyring holds both until the
// old one has been revoked for an hour.
//
// Replay defence: [DedupAlone]. Everything rests on deduplication by the body: the
// signature covers neither a time nor the headers X-Shopify-Event-Id and
// X-Shopify-Topic, which are [Facts].UnsignedID and UnsignedType. The topic decides
// how the body is to be read, so give each topic a URL of its own. The body's id is
// that of the order or product, not of the event.
//
// Source: https://shopify.dev/docs/apps/build/webhooks/subscribe/https, and a value
// from the tests of shopify-api-js.
func Shopify() *Described {
	return describe(Description{
		Name:            "shopify",
		SignatureHeader: "X-Shopify-Hmac-Sha256",
		Encoding:        Base64,
		Signed:          "{body}",
		SignWith:        OldestKey,
		IDHeader:        "X-Shopify-Event-Id",
		TypeHeader:      "X-Shopify-Topic",
	})
}
