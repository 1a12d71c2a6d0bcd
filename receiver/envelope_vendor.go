package receiver

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/vendors"
)

// VendorEnvelope returns an Envelope that reads the events of a sender of package vendors: its
// media types, where its data are, which object they are about, and the object's version
// where it has one. It is yours to change. UnsignedType and UnsignedID stay false: the events
// of a sender whose signature covers no type, such as GitHub, are [Untyped] until you set the
// former. Challenge stays nil except for Slack and Twitch: [ZoomChallenge] is Zoom's.
//
// Where a signature covers parts of the body alone (see [vendors.Vendor.UnsignedBody]), the
// Data are not signed either: fetch what the event says. If a sender has a
// [vendors.Vendor.BodyID], such as Google Pub/Sub, the ID is the one in the body, and no less
// reliable than the body: repetitions differ elsewhere. An event without it is refused.
func VendorEnvelope(v vendors.Vendor) *Envelope {
	switch v.Challenge {
	case vendors.SlackJSON:
		return SlackEnvelope()
	case vendors.TwitchText:
		return TwitchEnvelope()
	}
	e := &Envelope{DataField: v.DataField, EmptyAnswer: v.EmptyAnswer}
	switch v.Body {
	case vendors.Form:
		e.ContentTypes = []string{mediaForm}
	case vendors.JSONOrForm:
		e.ContentTypes = []string{mediaJSON, mediaForm}
	case vendors.PlainJSON:
		e.ContentTypes = []string{"text/plain", mediaJSON}
	case vendors.OwnJSON:
		e.ContentTypes = []string{v.Media, mediaJSON}
	}
	// The scheme of Standard Webhooks knows the recommended name of the type, and no other.
	typed := (v.Kind == vendors.Standard || v.Kind == vendors.Svix) && v.Description.TypeField != ""
	switch {
	case v.BodyID != "":
		e.Read = func(ev *Event) error { return readID(ev, v) }
	case typed || v.ObjectID != "" && !v.UnsignedBody():
		e.Read = func(ev *Event) error {
			if typed && validJSON(ev.Body) {
				ev.Type = eventType(scalarAt(ev.Body, v.Description.TypeField))
			}
			readObject(ev, v)
			return nil
		}
	}
	return e
}

func readID(ev *Event, v vendors.Vendor) error {
	id := ""
	if validJSON(ev.Body) {
		id = scalarAt(ev.Body, v.BodyID)
	}
	if id == "" {
		return fmt.Errorf("the body has no %s, which tells the events of %s apart", v.BodyID, v.Title)
	}
	ev.ID = eventID(signing.Facts{ID: id})
	return nil
}

// readObject leaves out an object whose type or id has not the form of ours, and a version
// without one.
func readObject(ev *Event, v vendors.Vendor) {
	if !validJSON(ev.Body) {
		return
	}
	kind, fixed := strings.CutPrefix(v.ObjectType, "=")
	if !fixed {
		kind = scalarAt(ev.Body, kind)
	}
	object := dedup.Object{Type: kind, ID: scalarAt(ev.Body, v.ObjectID)}
	if ident.ObjectType(object.Type) != nil || ident.ObjectID(object.ID) != nil {
		return
	}
	ev.Object = object
	if v.Version == "" {
		return
	}
	if version, err := strconv.ParseInt(scalarAt(ev.Body, v.Version), 10, 64); err == nil && ident.Version(version) == nil {
		ev.Version = version
	}
}

// scalarAt returns a text or a plain number at a path, or "".
func scalarAt(body []byte, path string) string {
	raw := memberAt(body, path)
	if len(raw) > 0 && raw[0] >= '0' && raw[0] <= '9' && !strings.ContainsAny(string(raw), ".eE") {
		return string(raw)
	}
	s, err := text(raw)
	if err != nil {
		return ""
	}
	return s
}
