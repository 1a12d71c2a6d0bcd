package signing

// GitHub returns the scheme of GitHub's webhooks:
//
//	X-Hub-Signature-256: sha256=757107ea…
//
// which is the hex HMAC-SHA256 of the body, keyed by the text of the secret: read it with
// [ParseTextSecret]. There is one secret and one signature, so that during a rotation the
// receiver's keyring holds both secrets. The SHA-1 of the older header X-Hub-Signature is
// ignored.
//
// Replay defence: [DedupAlone]. Everything rests on deduplication by the body: the
// signature covers neither a time nor the headers X-GitHub-Delivery and X-GitHub-Event,
// which are [Facts].UnsignedID and UnsignedType. Two deliveries with the same bytes are
// one to the receiver. They are rare: GitHub's bodies have times in them.
//
// Source:
// https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries, with
// a published value. go-github verifies the signatures of this scheme, and the other way
// round.
func GitHub() *Described {
	return describe(Description{
		Name:            "github",
		SignatureHeader: "X-Hub-Signature-256",
		SignaturePrefix: "sha256=",
		Signed:          "{body}",
		IDHeader:        "X-GitHub-Delivery",
		TypeHeader:      "X-GitHub-Event",
	})
}
