package signing

// ConvoySimple returns the simple scheme of Convoy's webhooks:
//
//	X-Convoy-Signature: 244449b7…
//
// which is the hex HMAC-SHA256 of the body. A project may have chosen SHA-512, base64
// or another header: make that with [NewDescribed] from this one's Description. The key
// is the text of the endpoint's secret: read it with [ParseTextSecret].
//
// Replay defence: [DedupAlone]. Everything rests on deduplication by the body: the
// signature covers neither a time nor the header X-Convoy-Idempotency-Key, which is
// [Facts].UnsignedID. [ConvoyAdvanced] is better.
//
// Source: https://docs.getconvoy.io/product-manual/signatures, and the values in
// pkg/signature/testdata/signature-vectors.json of github.com/frain-dev/convoy.
func ConvoySimple() *Described {
	return describe(Description{
		Name:            "convoy-simple",
		SignatureHeader: "X-Convoy-Signature",
		Signed:          "{body}",
		IDHeader:        "X-Convoy-Idempotency-Key",
	})
}

// ConvoyAdvanced returns the advanced scheme of Convoy's webhooks:
//
//	X-Convoy-Signature: t=1700000000,v1=77b8b926…,v1=…
//
// where each v1 is the hex HMAC-SHA256 of "TIMESTAMP,BODY". Keys, algorithms and headers
// are those of [ConvoySimple]. While a secret is rolled there is one v1 for each; a
// project's second signature scheme has v2 as its SignatureLabel.
//
// Replay defence: [TimeWindow].
func ConvoyAdvanced() *Described {
	return describe(Description{
		Name:            "convoy-advanced",
		SignatureHeader: "X-Convoy-Signature",
		SignatureLabel:  "v1",
		TimestampLabel:  "t",
		Signed:          "{timestamp},{body}",
		SignWith:        EveryKey,
		IDHeader:        "X-Convoy-Idempotency-Key",
	})
}
