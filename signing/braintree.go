package signing

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // Braintree's key is a SHA-1, and no collision of one helps
	"encoding/base64"
	"encoding/xml"
	"strings"
	"time"
)

// Braintree is the [Scheme] of Braintree's webhooks: forms with two parameters,
//
//	bt_signature=PUBLICKEY|HEX&PUBLICKEY|HEX
//	bt_payload=BASE64 of an XML document
//
// where HEX is the HMAC-SHA1 of the text of bt_payload, keyed by the SHA-1 of the private
// key: read that with [ParseTextSecret]. Up to four pairs are compared, whatever their public
// keys are. A form with another parameter is refused, so that everything in it is signed.
//
// The event's Type is the document's kind, and its Time the timestamp, at which it happened.
// Repetitions have that, too, so it is no time of signing: the scheme is [DedupAlone], and
// the payload is the key of deduplication.
//
// Source: the libraries braintree (npm), which signs and verifies alike, and
// https://developer.paypal.com/braintree/docs/guides/webhooks/parse.
type Braintree struct{ composed }

var _ FactReader = (*Braintree)(nil)

// NewBraintree returns the scheme. It is safe for concurrent use.
func NewBraintree() *Braintree {
	return &Braintree{composed{name: "braintree", algorithm: HMACSHA1, key: braintreeKey, read: readBraintree}}
}

func braintreeKey(m *material) *hmacKey {
	if !isText(m) {
		return nil
	}
	sum := sha1.Sum([]byte(m.reveal())) //nolint:gosec // see the import
	return newHMACKey(sum[:])
}

const maxBraintreePairs = 4

func readBraintree(m *Message) (text []byte, signatures []digest, ok bool) {
	form := formOf(m.Body)
	if len(form) != 2 || len(form["bt_signature"]) != 1 || len(form["bt_payload"]) != 1 {
		return nil, nil, false
	}
	for pair := range strings.SplitSeq(form["bt_signature"][0], "&") {
		var decoded digest
		if _, encoded, found := strings.Cut(pair, "|"); found && Hex.decode(&decoded, HMACSHA1.size(), encoded) {
			if signatures = append(signatures, decoded); len(signatures) > maxBraintreePairs {
				return nil, nil, false
			}
		}
	}
	return []byte(form["bt_payload"][0]), signatures, len(signatures) > 0
}

// Facts implements [FactReader].
func (*Braintree) Facts(m Message, _ Verified) Facts {
	f := Facts{}.Of(m)
	payload := formOf(m.Body).Get("bt_payload")
	f.text = []byte(payload)
	document, err := base64.StdEncoding.DecodeString(payload) // which passes over line feeds
	if err != nil {
		return f
	}
	var notification struct {
		XMLName xml.Name `xml:"notification"`
		Kind    []string `xml:"kind"`
		At      []string `xml:"timestamp"`
	}
	d := xml.NewDecoder(bytes.NewReader(document))
	if d.Decode(&notification) != nil {
		return f
	}
	if len(notification.Kind) == 1 {
		f.Type = notification.Kind[0]
	}
	if len(notification.At) == 1 {
		f.Time, _ = time.Parse(time.RFC3339, notification.At[0])
		f.Time = f.Time.UTC()
	}
	return f
}
