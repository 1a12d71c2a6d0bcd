package signing

import "strings"

// Adyen is the [Scheme] of Adyen's standard payment webhooks:
//
//	{"live": "false", "notificationItems": [{"NotificationRequestItem": {
//		"additionalData": {"hmacSignature": "coqCmt/IZ4E3CzPvMY8zTjQVL5hYJUiBRg8UU+iCWo0="}, …}}]}
//
// where hmacSignature is the base64 HMAC-SHA256 of pspReference, originalReference,
// merchantAccountCode, merchantReference, amount.value, amount.currency, eventCode and
// success, joined by colons. The key is what the hex digits of the secret stand for: read it
// with [ParseTextSecret].
//
// A body with JSON has one item, as Adyen's documentation says. One with several is refused:
// each would be an event with a key of deduplication of its own, and a request is taken or
// refused as a whole. Only merchantReference may have colons: otherwise the text could be
// split in two ways.
//
// The signature covers these eight values and nothing else, so a verifier asks for
// VerifierConfig.UnsignedBody. They are also the key of deduplication, and the Type is the
// eventCode. Nothing tells when it was signed: the scheme is [DedupAlone].
//
// Source: https://docs.adyen.com/development-resources/webhooks/verify-hmac-signatures, its
// example, and values from the tests of Adyen's libraries.
type Adyen struct{ composed }

var _ FactReader = (*Adyen)(nil)

// NewAdyen returns the scheme. It is safe for concurrent use.
func NewAdyen() *Adyen {
	return &Adyen{composed{name: "adyen", algorithm: HMACSHA256, key: func(m *material) *hmacKey { return m.hex }, read: readAdyen}}
}

// CoversBody is false: only some of the body is signed.
func (*Adyen) CoversBody() bool { return false }

// Facts implements [FactReader].
func (*Adyen) Facts(m Message, _ Verified) Facts {
	f := Facts{}.Of(m)
	item := adyenItem(m.Body)
	f.Type, _ = jsonScalar(jsonIn(item, "eventCode"))
	id, _ := jsonScalar(jsonIn(item, "pspReference"))
	f.UnsignedID = Unsigned(id) // signed, but of the payment: several events have it
	if text, _, ok := readAdyen(&m); ok {
		f.text = text
	}
	return f
}

// adyenItem returns the only item, which is valid JSON, or nil.
func adyenItem(body []byte) (item []byte) {
	n := 0
	for element := range jsonElements(jsonAt(body, "notificationItems")) {
		if n++; n > 1 {
			return nil
		}
		item = jsonIn(element, "NotificationRequestItem")
	}
	return item
}

// adyenFields are signed in this order.
var adyenFields = [...]string{
	"pspReference", "originalReference", "merchantAccountCode", "merchantReference", "amount.value", "amount.currency", "eventCode", "success",
}

func readAdyen(m *Message) (text []byte, signatures []digest, ok bool) {
	item := adyenItem(m.Body)
	for i, name := range adyenFields {
		value, found := jsonScalar(jsonIn(item, name))
		if name == "originalReference" && !found {
			// It may be missing or null, but not be there twice: then no one could say which.
			raw, count := jsonMembers(item, name)
			found = count == 0 || count == 1 && string(raw) == "null"
		}
		if !found || name != "merchantReference" && strings.Contains(value, ":") {
			return nil, nil, false
		}
		if i > 0 {
			text = append(text, ':')
		}
		text = append(text, value...)
	}
	encoded, _ := jsonScalar(jsonIn(item, "additionalData.hmacSignature"))
	signatures = make([]digest, 1)
	return text, signatures, Base64.decode(&signatures[0], HMACSHA256.size(), encoded)
}
