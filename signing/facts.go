package signing

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"
)

// Facts is what a verified message says about its event. Every field that is not Unsigned
// comes from bytes that the signature covers. A fact that these bytes do not state, or
// state twice, is left empty. It is never an error, because the sender itself has signed
// them.
type Facts struct {
	ID   string    // the sender's id of the event
	Type string    // what kind of event it is
	Time time.Time // when it happened or was made, as the event says; UTC

	// UnsignedID and UnsignedType are from headers that the signature does not cover.
	UnsignedID   Unsigned
	UnsignedType Unsigned

	of   []byte // the body of the message that they are of
	text []byte // what is signed where it is not the body; nil: it is
	made bool   // of is known, and may be empty
}

// Unsigned is a text outside of the signed bytes. An attacker who captures one signed
// request can send it again with another text here. So deduplication by it stops no
// replay attack, and a program that acts on it does what the attacker says. It has a type
// of its own so that its use is visible.
type Unsigned string

// DedupKey returns the key of deduplication: "id-" and the ID if the signature covers
// one, and otherwise "sha256-" and the SHA-256 of the body in hex. With the latter, two
// events with the same bytes are one.
//
// It is empty, which no store accepts, for Facts that have no ID and belong to no
// message: a [FactReader] has made them, and neither a [Verifier] nor [Facts.Of] has tied
// them to one.
func (f Facts) DedupKey() string {
	switch {
	case f.ID != "":
		return "id-" + f.ID
	case !f.made:
		return ""
	case f.text != nil:
		return hashKey(f.text)
	default:
		return hashKey(f.of)
	}
}

func hashKey(signed []byte) string {
	sum := sha256.Sum256(signed)
	return "sha256-" + hex.EncodeToString(sum[:])
}

// Of returns f as the Facts of m, a message that was verified. If they have no ID,
// DedupKey is then made of m's own bytes. A [Verifier] calls Of itself; other
// implementations of a verifier must call it. m.Body must not be changed afterwards.
func (f Facts) Of(m Message) Facts {
	if !f.made || !bytes.Equal(f.of, m.Body) {
		f.text = nil
	}
	f.of, f.made = m.Body, true
	return f
}

func (f *Facts) none() bool { return f.ID == "" && f.Type == "" && f.Time.IsZero() }

// BodyFacts returns the facts that a body alone states. The body was verified before and
// kept without its headers, or came in another way that vouches for it. With several
// schemes, the first that finds an id counts, or else the first that finds a fact.
func (v *Verifier) BodyFacts(body []byte) Facts {
	var best Facts
	for _, reader := range v.facts {
		if reader == nil {
			continue
		}
		f := reader.Facts(Message{Body: body}, Verified{})
		if f.ID != "" {
			best = f
			break
		}
		if best.none() {
			best = f
		}
	}
	return best.Of(Message{Body: body})
}

// FactReader is a [Scheme] that knows where its sender states the facts of an event.
type FactReader interface {
	Scheme
	// Facts reads a message that Verify has accepted with v as its result. For any other
	// message its result means nothing. [Verifier.BodyFacts] calls it with a body alone.
	//
	// It may leave out every field. Without an ID, which the signature must cover, the
	// bytes of the message tell the event from others.
	Facts(m Message, v Verified) Facts
}

// Facts returns the id, the type and the time that the body has, as events of this
// module do.
func (s TimestampBody) Facts(m Message, _ Verified) Facts {
	return factsOf(m.Body, "id", "type", "occurred_at")
}

// Facts returns the id that the header has, and the type and the timestamp that the
// body has, as Standard Webhooks 1.0.0 recommends. Events of this module have the time as
// occurred_at.
func (s StandardWebhooks) Facts(m Message, v Verified) Facts {
	f := factsOf(m.Body, "", "type", "timestamp")
	if f.Time.IsZero() {
		f.Time = factsOf(m.Body, "", "", "occurred_at").Time
	}
	f.ID = v.ID
	return f
}

// Facts implements [FactReader] by the Description's fields.
func (s *Described) Facts(m Message, v Verified) Facts {
	f := factsOf(m.Body, s.d.IDField, s.d.TypeField, s.d.TimeField)
	if !s.text.covers() {
		f = s.coveredFacts(f, m)
	}
	switch {
	case v.ID != "":
		f.ID = v.ID
	case s.d.IDHeader != "":
		f.UnsignedID = unsigned(m.Header, s.d.IDHeader)
	}
	if kind := unsigned(m.Header, s.d.TypeHeader); kind != "" {
		if s.text.names(partHeader, http.CanonicalHeaderKey(s.d.TypeHeader)) {
			f.Type = cmp.Or(f.Type, string(kind))
		} else {
			f.UnsignedType = kind
		}
	}
	return f
}

// coveredFacts keeps those of the body's facts that are parts of the signed text, which does
// not have the body. The text is what tells two messages apart.
func (s *Described) coveredFacts(f Facts, m Message) Facts {
	if !s.text.names(partField, s.d.IDField) {
		f.ID, f.UnsignedID = "", Unsigned(f.ID)
	}
	if !s.text.names(partField, s.d.TypeField) {
		f.Type, f.UnsignedType = "", Unsigned(f.Type)
	}
	if !s.text.names(partField, s.d.TimeField) && (s.d.TimeField != s.d.TimestampField || !s.text.has(partTimestamp)) {
		f.Time = time.Time{}
	}
	if !s.looks {
		return f
	}
	r := stated{header: m.Header}
	_ = s.readSignatures(m.Header, &r) // for the time, which may stand there
	if s.timestamp != "" {
		r.timestamp = find(m.Header, s.timestamp).text
	}
	if s.readMessage(&m, &r) {
		f.text = append(s.appendHead([]byte{}, &r), s.appendTail(nil, &r)...)
	}
	return f
}

func unsigned(h http.Header, name string) Unsigned {
	if name == "" {
		return ""
	}
	if v := find(h, http.CanonicalHeaderKey(name)); v.count == 1 {
		return Unsigned(v.text)
	}
	return ""
}

func factsOf(body []byte, id, eventType, at string) Facts {
	f := Facts{}.Of(Message{Body: body})
	f.ID, _ = jsonText(body, id)
	f.Type, _ = jsonText(body, eventType)
	if text, found := jsonText(body, at); found {
		f.Time = looseTime(text)
	}
	return f
}

// looseTime takes the forms in which events have times: RFC 3339, or seconds or
// milliseconds since 1970. It is not for the window.
func looseTime(text string) time.Time {
	if unix, ok := parseTimestamp(text); ok {
		return time.Unix(unix, 0).UTC()
	}
	if _, ok := parseMillis(text); ok {
		millis, _ := strconv.ParseInt(text, 10, 64) // of 14 digits at most
		return time.UnixMilli(millis).UTC()
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}
