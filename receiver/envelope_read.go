package receiver

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/signing"
)

// read reads an event that was just verified, or answers a challenge.
func (e *Envelope) read(body []byte, f signing.Facts) (ev Event, answer Result, failure *Error) {
	ev = Event{Body: body, ID: eventID(f), Type: eventType(f.Type), OccurredAt: f.Time}
	if e.UnsignedID && f.ID == "" {
		ev.ID = deliveryID(f)
	}
	if f.Type == "" && e.UnsignedType {
		ev.Type = eventType(string(f.UnsignedType))
	}
	if answer, failure = e.challenge(body); answer != "" || failure != nil {
		return ev, answer, failure
	}
	if e.UnsignedID && f.ID == "" && f.UnsignedID == "" {
		return ev, "", fail(ReasonHeader, errors.New("the header with the delivery's id is missing or repeated, and Envelope.UnsignedID needs it"))
	}
	ev, failure = e.complete(ev)
	return ev, "", failure
}

// challenge returns the answer to a question, or "" for a body that is no question.
func (e *Envelope) challenge(body []byte) (answer Result, failure *Error) {
	err := contain(func() error {
		if e.Challenge != nil {
			if own, is := e.Challenge(body); is {
				answer = challengedPrefix + Result(own)
				if !json.Valid(own) {
					failure = fail(ReasonApply, errors.New("Envelope.Challenge returned no JSON: use TextChallenge for plain text"))
				}
				return nil
			}
		}
		if e.TextChallenge != nil {
			if own, is := e.TextChallenge(body); is {
				answer = challengedTextPrefix + Result(own)
				failure = checkEcho("the text of a challenge", own)
			}
		}
		return nil
	})
	if err != nil {
		failure = fail(ReasonPanic, fmt.Errorf("Envelope.Challenge: %w", err))
	}
	return answer, failure
}

// again reads an event that was verified before and kept with its id and its type, or
// that its caller vouches for.
func (e *Envelope) again(body []byte, id, kind string, f signing.Facts) (Event, *Error) {
	if id == "" {
		if f.ID == "" {
			return Event{}, fail(ReasonDecode, errors.New("the body has no id: Trusted.ID must be given"))
		}
		id = eventID(f)
	}
	if kind == "" {
		kind = eventType(f.Type)
	}
	return e.complete(Event{Body: body, ID: id, Type: kind, OccurredAt: f.Time})
}

func (e *Envelope) complete(ev Event) (Event, *Error) {
	if ev.Body == nil { // without a body; a column that is NOT NULL refuses nil
		ev.Body = []byte{}
	}
	body := ev.Body
	var err error
	if ev.Data, err = e.data(body); err != nil {
		return ev, fail(ReasonDecode, err)
	}
	if e.Read != nil {
		panicked := contain(func() error {
			err = e.Read(&ev)
			return nil
		})
		if panicked != nil {
			return ev, fail(ReasonPanic, fmt.Errorf("Envelope.Read: %w", panicked))
		}
		ev.Body = body
	}
	if err == nil {
		err = checkForeign(ev)
	}
	if err != nil {
		return ev, fail(ReasonDecode, fmt.Errorf("the sender's envelope: %w", err))
	}
	return ev, nil
}

func checkForeign(ev Event) error {
	errs := []error{ident.EventID(ev.ID), ident.Type(ev.Type)}
	if ev.Object != (dedup.Object{}) {
		errs = append(errs, ident.ObjectType(ev.Object.Type), ident.ObjectID(ev.Object.ID))
	} else if ev.Version != 0 {
		errs = append(errs, errors.New("it has a version and no object: a version is an object's"))
	}
	if ev.Version != 0 {
		errs = append(errs, ident.Version(ev.Version))
	}
	return errors.Join(errs...)
}

// data reads the body alone, so that its result is the same later, without the headers.
func (e *Envelope) data(body []byte) (json.RawMessage, error) {
	if validJSON(body) {
		return memberAt(body, e.DataField), nil
	}
	if slices.Contains(e.ContentTypes, mediaForm) {
		if values, err := url.ParseQuery(string(body)); err == nil {
			return formData(values)
		}
	}
	if slices.ContainsFunc(e.ContentTypes, func(media string) bool { return media != mediaForm && notJSON(media) }) {
		return nil, nil
	}
	return nil, errors.New("the body is not well-formed")
}

func notJSON(media string) bool { return media != mediaJSON && !strings.HasSuffix(media, "+json") }

// formData makes a JSON object of a form: a name's value, or a list of its values.
func formData(values url.Values) (json.RawMessage, error) {
	form := make(map[string]any, len(values))
	for name, all := range values {
		if form[name] = all; len(all) == 1 {
			form[name] = all[0]
		}
	}
	return json.Marshal(form)
}

// eventID is injective: two ids of a sender never become one.
func eventID(f signing.Facts) string {
	switch {
	case f.ID == "":
		return f.DedupKey()
	case ident.EventID(f.ID) == nil && !strings.HasPrefix(f.ID, "sha256-"):
		return f.ID
	default:
		sum := sha256.Sum256([]byte(f.ID))
		return "sha256-id-" + hex.EncodeToString(sum[:])
	}
}

// deliveryID is of the bytes and of the id outside of them. The key of the bytes has a
// fixed length, so no two pairs have one id.
func deliveryID(f signing.Facts) string {
	sum := sha256.Sum256([]byte(f.DedupKey() + string(f.UnsignedID)))
	return "sha256-delivery-" + hex.EncodeToString(sum[:])
}

// eventType gives types the form that routes have.
func eventType(text string) string {
	if text == "" {
		return Untyped
	}
	return typeForm.Replace(text)
}

var typeForm = strings.NewReplacer("/", ".", ":", ".", " ", "_")
