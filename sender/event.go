package sender

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/internal/newid"
)

// Object is what an event is about.
type Object struct {
	Type string
	ID   string
}

// Event is something that happened, as a producer reports it. The library gives
// it its id, and its version unless the producer has one.
type Event struct {
	// Type is words joined by full stops, such as "subscriber.updated".
	// Subscriptions filter by it.
	Type string

	// Object is what the event is about, the same one for all subscribers: if two of them have
	// objects with one id, the events of both count as those of one. Its type has the form of
	// an event's type; its id is 1 to 255 bytes of UTF-8 without control characters. Types
	// that begin with "surehook." are the library's, for the events of notices. Dispatchers
	// publish about these objects in the middle of their work, so an open transaction of a
	// caller about one of them would hold the dispatchers up.
	Object Object

	// Version orders the changes of the object: it must be higher with each.
	// Zero lets the store assign the next one, which rises by one per object in
	// the order of the commits, or by more where objects are forgotten (see
	// Retention.Objects). A given version must exceed the stored one, else
	// the event is refused with a *VersionError.
	Version int64

	// Data is the optional value under "data" in the body: anything that json.Marshal
	// takes. It is marshalled once, when it is published, before any statement. A
	// json.RawMessage is JSON already, and its bytes are sent as they are. A []byte is
	// refused, since it could be JSON, or bytes to be sent in base64. Nil, or a nil
	// json.RawMessage, is no data. Then the event is thin: the consumer reads the current
	// state from the service. Objects and arrays may be nested up to 500 deep.
	Data any

	// PayloadVersion is the version of Data, as a date: 2026-11-25. It stands in the body, as
	// payload_version. A subscription that is pinned to an older version gets the data in
	// that one (see Settings.PayloadVersion). Empty: the newest version of the type, if the
	// Publisher has PublisherConfig.PayloadVersion, and else none.
	PayloadVersion string

	// Subscriber is the id of the subscriber that the event is for. The operator's
	// subscriptions get it too. Empty: it is for every subscriber. If there is no such
	// subscriber the publish fails with ErrNotFound, unless IfSubscriberExists is set.
	Subscriber string

	// IfSubscriberExists drops the event if there is no such Subscriber, or none any
	// more: it is for producers whose customers need not have webhooks. Nothing is
	// written then, there is no error, the transaction goes on, and Ref.Dropped is set.
	// A Subscription that does not exist is an error all the same.
	IfSubscriberExists bool

	// Subscription, if not empty, is the id of the one subscription that gets
	// the event, whatever its filter says. Subscriber is then its owner's id.
	Subscription string

	// URL, if not empty, is where the event is posted instead of the subscription's
	// URL. It belongs to an event that is addressed to one subscription, and must be of
	// the same origin, since it is posted with that one's settings: see Callback. If it is
	// not, nothing is sent, and the attempts fail as ClassBlocked. It is absolute, and has
	// the scheme http or https, a host, and no space.
	URL string

	// OccurredAt is when it happened. Zero: now. Receivers judge by it whether they may have
	// forgotten a fact. They set aside a fact that occurred longer ago than they remember (32
	// days by default), even if it is new. They do not set aside one in the future: let no
	// event have such a time.
	OccurredAt time.Time

	// IdempotencyKey makes a second publish return the first one's Ref, with
	// Duplicate set, and change nothing. With another content it is refused with
	// ErrIdempotencyKey. It is kept for as long as the event is. KeyScope keeps
	// the keys of different callers apart. A key has up to 255 bytes, a scope up to
	// 128, both of UTF-8 without NUL.
	IdempotencyKey string
	KeyScope       string
}

// Ref is what a publish returns: the event's id and version. Duplicate tells
// that the idempotency key was known, and that id and version are the first
// one's. Delivery is the id of the event's one delivery, if it is addressed to a
// single subscription. Dropped tells that the event was not published, because its
// subscriber does not exist and Event.IfSubscriberExists was set; all else is zero then.
type Ref struct {
	ID        string
	Version   int64
	Duplicate bool
	Delivery  string
	Dropped   bool
}

// Draft is an event on its way into a store: validated and rendered, except for its
// version where the store assigns it.
type Draft struct {
	ID           string
	Type         string
	Object       Object
	Version      int64 // 0: the store assigns the object's next
	Subscriber   string
	Subscription string
	// IfSubscriberExists: it is dropped if there is no such Subscriber.
	IfSubscriberExists bool
	URL                string // where it is posted; "": to the subscription's URL
	OccurredAt         time.Time
	Notice             bool // it tells of a notice
	// Traceparent is stored with the event, and is part of neither its body nor KeyHash; "":
	// there is none. See PublisherConfig.Traceparent.
	Traceparent string
	// About, if not empty, is the id of the subscription that a notice is about: it
	// gets the event only if it asks for exactly its type. See Matches.
	About string

	// The body is BodyHead, the version in decimal, BodyTail. It is rendered
	// once, here; the store joins the parts and never changes the bytes again.
	BodyHead, BodyTail []byte

	Key      string // "": none
	KeyScope string
	KeyHash  [sha256.Size]byte // of everything that a repeated publish must agree on
}

// Body returns the event's body under a version.
func (d *Draft) Body(version int64) []byte {
	b := make([]byte, 0, len(d.BodyHead)+len(d.BodyTail)+20)
	b = append(b, d.BodyHead...)
	b = strconv.AppendInt(b, version, 10)
	return append(b, d.BodyTail...)
}

// reservedType begins the types of objects that are the library's.
const reservedType = "surehook."

// Draft validates an event and renders it, for a store that persists it. now is when it is
// published, and maxBody bounds its body, in bytes. The error has all problems at once, and
// matches ErrInvalidEvent.
func (e *Event) Draft(now time.Time, maxBody int) (Draft, error) {
	data, err := e.checked()
	if err != nil {
		return Draft{}, err
	}
	return e.rendered(now, data, maxBody)
}

// checked validates an event, and returns its data as JSON.
func (e *Event) checked() (json.RawMessage, error) {
	data, err := e.data()
	err = errors.Join(e.validate(), err)
	if strings.HasPrefix(e.Object.Type, reservedType) {
		err = errors.Join(err, fmt.Errorf("%w: object type %q begins with %q, which only the library's own objects do: choose another one", ErrInvalidEvent, e.Object.Type, reservedType))
	}
	return data, err
}

// rendered makes the draft of an event that was validated, with its data as JSON.
func (e *Event) rendered(now time.Time, data json.RawMessage, maxBody int) (Draft, error) {
	if e.OccurredAt.IsZero() {
		e.OccurredAt = now
	}
	d := Draft{
		ID: newid.New("evt_", now), Type: e.Type, Object: e.Object, Version: e.Version,
		Subscriber: e.Subscriber, Subscription: e.Subscription, URL: e.URL, OccurredAt: e.OccurredAt.UTC(), IfSubscriberExists: e.IfSubscriberExists,
		Key: e.IdempotencyKey, KeyScope: e.KeyScope,
	}
	d.render(e.PayloadVersion, data)
	if size := len(d.BodyHead) + len(d.BodyTail) + len(strconv.FormatInt(ident.MaxVersion, 10)); size > maxBody {
		return Draft{}, fmt.Errorf("%w: its body would have up to %d bytes, at most %d are allowed (PublisherConfig.MaxBodyBytes): send less data, or a thin event", ErrInvalidEvent, size, maxBody)
	}
	if e.IdempotencyKey != "" {
		d.KeyHash = e.hash(data)
	}
	return d, nil
}

// data returns Data as JSON, or nil if there is none.
func (e *Event) data() (json.RawMessage, error) {
	var data json.RawMessage
	switch given := e.Data.(type) {
	case nil:
		return nil, nil
	case json.RawMessage:
		if given == nil {
			return nil, nil
		}
		if !json.Valid(given) {
			return nil, fmt.Errorf("%w: data is not valid JSON", ErrInvalidEvent)
		}
		data = given
	case []byte:
		return nil, fmt.Errorf("%w: data is a []byte: give json.RawMessage(data) if it is JSON, and else the value that it stands for", ErrInvalidEvent)
	default:
		marshalled, err := json.Marshal(given)
		if err != nil {
			return nil, fmt.Errorf("%w: data, of type %T, cannot be marshalled: give a value that json.Marshal takes, or a json.RawMessage: %w", ErrInvalidEvent, given, err)
		}
		data = marshalled
	}
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("%w: data is not valid UTF-8", ErrInvalidEvent)
	}
	if nestedTooDeep(data) {
		return nil, fmt.Errorf("%w: data has more than %d objects and arrays within each other, which many parsers do not take: make it flatter, or send it as a string", ErrInvalidEvent, maxDepth)
	}
	return data, nil
}

// maxDepth bounds the objects and arrays within each other. Parsers have bounds by default: 512
// is PHP's, and 10,000 is Go's. The body of an event has one level more than its data, and a page
// of the feed two more. A page that a reader cannot parse would end the feed for it.
const maxDepth = 500

// nestedTooDeep tells whether valid JSON has more than maxDepth objects and arrays within each
// other.
func nestedTooDeep(data []byte) bool {
	if bytes.Count(data, []byte("{"))+bytes.Count(data, []byte("[")) <= maxDepth {
		return false
	}
	depth, text := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

func (e *Event) validate() error {
	var errs []error
	add := func(err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%w: %w", ErrInvalidEvent, err))
		}
	}
	add(ident.Type(e.Type))
	add(ident.ObjectType(e.Object.Type))
	add(ident.ObjectID(e.Object.ID))
	if e.Version != 0 {
		add(ident.Version(e.Version))
	}
	add(ident.Storable("subscriber", e.Subscriber))
	add(ident.Storable("subscription", e.Subscription))
	if e.Subscription != "" && e.Subscriber == "" {
		add(errors.New("subscription is given without its subscriber"))
	}
	if e.IfSubscriberExists && e.Subscriber == "" {
		add(errors.New("IfSubscriberExists is set without a subscriber: name the one that the event is for, or leave it out"))
	}
	if e.PayloadVersion != "" {
		add(checkPayloadVersion(e.PayloadVersion))
	}
	if e.URL != "" {
		add(e.checkURL())
	}
	if e.IdempotencyKey != "" {
		if len(e.IdempotencyKey) > ident.MaxObjectID {
			add(fmt.Errorf("idempotency key has %d bytes: at most %d are allowed", len(e.IdempotencyKey), ident.MaxObjectID))
		}
		if len(e.KeyScope) > ident.MaxScope {
			add(fmt.Errorf("key scope has %d bytes: at most %d are allowed", len(e.KeyScope), ident.MaxScope))
		}
		add(ident.Storable("idempotency key", e.IdempotencyKey))
		add(ident.Storable("key scope", e.KeyScope))
	}
	if y := e.OccurredAt.Year(); !e.OccurredAt.IsZero() && (y < 1 || y > 9999) {
		add(fmt.Errorf("occurred at is in the year %d: RFC 3339 allows 1 to 9999", y))
	}
	return errors.Join(errs...)
}

// render writes {"id":…,"type":…,"occurred_at":…,"object":{…},"version":‸,"payload_version":…,"data":…}.
func (d *Draft) render(version string, data json.RawMessage) {
	b := make([]byte, 0, 192+len(d.Object.ID))
	b = append(b, `{"id":"`...)
	b = append(b, d.ID...)
	b = append(b, `","type":"`...)
	b = append(b, d.Type...)
	b = append(b, `","occurred_at":"`...)
	b = d.OccurredAt.AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","object":{"type":"`...)
	b = append(b, d.Object.Type...)
	b = append(b, `","id":`...)
	b = appendString(b, d.Object.ID)
	b = append(b, `},"version":`...)
	d.BodyHead = b
	d.BodyTail = appendPayload(make([]byte, 0, len(payloadVersionName)+len(version)+len(dataName)+len(data)+2), version, data)
}

// appendString appends s as a JSON string. Only the object's id needs it: all
// other fields are of characters that JSON leaves as they are.
func appendString(b []byte, s string) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return append(b, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}

// hash covers what two publishes under one idempotency key must agree on. The
// time is left out where the producer did not give it.
func (e *Event) hash(data json.RawMessage) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, s := range []string{e.Type, e.Object.Type, e.Object.ID, e.Subscriber, e.Subscription, strconv.FormatInt(e.Version, 10), string(data)} {
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	if e.URL != "" {
		fmt.Fprintf(h, "%d:%s", len(e.URL), e.URL)
	}
	h.Sum(sum[:0])
	return sum
}

// EventInfo is what logs and hooks say of an event.
type EventInfo struct {
	ID        string
	Type      string
	Object    Object
	CreatedAt time.Time // when it was published, on the database's clock
	Notice    bool      // it tells of a notice
	URL       string    // where it is posted; "": to its subscription's URL

	// Traceparent is the trace context of its publisher: see PublisherConfig.Traceparent.
	// "": there was none.
	Traceparent string
}

// StoredEvent is an event as it was published.
type StoredEvent struct {
	EventInfo
	Version      int64
	Subscriber   string // the id of the one that it is addressed to; "": everyone who asks for its type
	Subscription string // likewise
	Redacted     bool   // its body was removed: see History.Redact
	Body         []byte // as posted; in the answer of Event only; nil: it was redacted
}
