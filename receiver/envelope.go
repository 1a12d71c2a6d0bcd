package receiver

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/surehook/surehook/signing"
)

// Envelope says how to read the events of another sender, whose bodies do not have this
// module's form, such as Stripe or GitHub. The signature is checked first, by a verifier
// with that sender's scheme. Nothing is read that the signature does not cover, except
// the type with UnsignedType. These will do for most:
//
//	&Envelope{DataField: "data.object"}     Stripe, Square
//	&Envelope{DataField: "data"}            Standard Webhooks, Svix, Paddle, Linear
//	&Envelope{UnsignedType: true}           GitHub, Shopify
//	&Envelope{ContentTypes: []string{"application/x-www-form-urlencoded"}, EmptyAnswer: true}   Twilio
//	SlackEnvelope()                         Slack
//
// # Ids
//
// The event's ID is the key of deduplication. It is the sender's own id where the
// signature covers one. If that id has other characters than letters, digits, hyphens and
// underscores, or more than 128, the ID is "sha256-id-" and the id's SHA-256 in hex.
// Where the signature covers no id, the ID is that of [signing.Facts.DedupKey]: "sha256-"
// and the SHA-256 of the body.
//
// Under a scheme that signs neither an id nor a time, such as GitHub's and Shopify's, two
// events of the same bytes are therefore one. Suppose that such a sender says "on", then
// "off", then "on" again, and the bodies have no time, id or number of their own. The
// third event is a duplicate of the first for as long as its marker is kept, and has no
// effect. UnsignedID tells such events apart, at a price.
//
// A scheme whose signatures cover no time ([signing.DedupAlone]) rests on the marker
// alone, and its verifier asks for VerifierConfig.Deduplicated. Once a marker is pruned,
// a captured request is taken again: replace the secret within the retention.
//
// # Versions
//
// Most senders give no versions. Such events have one effect each, also as states, and an
// older one can be applied after a newer one, unless Read finds an object and a version in
// the body. Where there is an object and no version, [Thin] and
// [OnThin] commit the state that they fetch under the version that comes with it.
type Envelope struct {
	// ContentTypes are the media types that are accepted. Text must be in UTF-8.
	// Defaults to application/json.
	ContentTypes []string

	// DataField is the path to the event's Data in a JSON body, with full stops between
	// names.
	// Defaults to "": the whole body.
	DataField string

	// UnsignedType takes the event's type from the header that the scheme knows, if the
	// signature covers no type. An attacker who captures a request before it is taken can
	// send it with another type: let the type choose how the body is read, and no more.
	UnsignedType bool

	// UnsignedID adds the delivery's id to the key of deduplication, where the signature
	// covers no id: the one in the header that the scheme knows, such as X-GitHub-Delivery.
	// Events with the same bytes and different ids are then several events. The price is the
	// defence against replays: whoever has captured one signed request can send it again
	// under other ids, and each time it has an effect. This ends only with the secret, or
	// with the scheme's time window if it has one. A request without that header is refused
	// with 400. Defaults to false: the same bytes are the same event.
	UnsignedID bool

	// Challenge answers a request that is no event but a question whether this receiver
	// is there. It is called right after verification. If it returns true, its answer, a
	// JSON value, is sent with status 200, and nothing is stored. It may be nil.
	Challenge func(body []byte) (answer json.RawMessage, is bool)

	// TextChallenge is Challenge for senders that want plain text, such as Twitch
	// ([TwitchChallenge]). The answer is sent as text/plain. One that has other
	// characters than letters, digits, "-", "_", "." and "~", or more than 256, is refused
	// with 400.
	TextChallenge func(body []byte) (answer string, is bool)

	// EmptyAnswer answers 200 with an empty body, for senders that read more than an
	// acknowledgement in a body; see [Receiver.WrapState] for answers of one's own.
	EmptyAnswer bool

	// Read completes an event that has its Body, ID, Type, OccurredAt and Data as far as
	// these are known. It may set every one of them except the Body, and also Object and
	// Version; a version needs an object. For the same body it must always return the same
	// event. It is called again when the event comes from an inbox or a dead letter, with the
	// ID and the Type of the first call. Its error is answered with 400. It may be nil.
	Read func(ev *Event) error
}

// Untyped is the Type of events of an [Envelope] that say none.
const Untyped = "untyped"

const (
	mediaJSON = "application/json"
	mediaForm = "application/x-www-form-urlencoded"
)

// FactVerifier is a [Verifier] that also reads the facts of the event from a message. An
// [Envelope] needs one.
type FactVerifier interface {
	Verifier
	// VerifyFacts is Verify, and also returns what the message says about its event.
	VerifyFacts(m signing.Message) (signing.Verified, signing.Facts, error)
	// BodyFacts returns what the body alone says. The body was verified before.
	BodyFacts(body []byte) signing.Facts
}

var (
	_ FactVerifier = (*signing.Verifier)(nil)
	_ FactVerifier = (*Secrets)(nil)
)

func (e *Envelope) withDefaults() *Envelope {
	if e == nil {
		return nil
	}
	out := *e
	out.ContentTypes = slices.Clone(e.ContentTypes)
	if len(out.ContentTypes) == 0 {
		out.ContentTypes = []string{mediaJSON}
	}
	for i, media := range out.ContentTypes {
		out.ContentTypes[i] = strings.ToLower(media)
	}
	return &out
}

func (e *Envelope) check(v Verifier) error {
	if e == nil {
		return nil
	}
	var problems []error
	for _, media := range e.ContentTypes {
		if _, params, err := mime.ParseMediaType(media); err != nil || len(params) > 0 || !strings.Contains(media, "/") {
			problems = append(problems, fmt.Errorf("receiver: Envelope.ContentTypes has %q: it must be a media type without parameters, such as application/json", media))
		}
	}
	if e.DataField != "" && slices.Contains(strings.Split(e.DataField, "."), "") {
		problems = append(problems, fmt.Errorf(`receiver: Envelope.DataField is %q: it must be names with full stops between them, such as "data.object"`, e.DataField))
	}
	if _, ok := v.(FactVerifier); !ok && !isNil(v) {
		problems = append(problems, errors.New("receiver: Envelope needs a verifier that tells what the signed bytes say: a FactVerifier, such as signing.Verifier or Secrets"))
	}
	return errors.Join(problems...)
}

// checkContent refuses what cannot be read. A coding is refused because the signature
// covers the bytes on the wire, and undoing the coding could make a thousand times as
// many bytes.
func (e *Envelope) checkContent(h http.Header) *Error {
	for _, coding := range h["Content-Encoding"] {
		if coding != "" && !strings.EqualFold(coding, "identity") {
			return fail(ReasonContentEncoding, errors.New("the body has a content encoding: it must be sent without one"))
		}
	}
	types := h["Content-Type"]
	if len(types) > 1 {
		return fail(ReasonHeader, errors.New("the Content-Type header is repeated"))
	}
	accepted := ownContentTypes
	if e != nil {
		accepted = e.ContentTypes
	}
	if len(types) == 1 && len(types[0]) <= maxContentType {
		if types[0] == accepted[0] {
			return nil
		}
		media, params, err := mime.ParseMediaType(types[0])
		if err == nil && slices.Contains(accepted, media) && isUTF8(params["charset"]) {
			return nil
		}
	}
	return fail(ReasonContentType, fmt.Errorf("the content type must be %s, in UTF-8, and have %d bytes at most", strings.Join(accepted, " or "), maxContentType))
}

// isUTF8 also takes the name that IANA does not have and senders use.
func isUTF8(charset string) bool {
	return charset == "" || strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "utf8")
}

// maxContentType bounds what is parsed of a stranger's header, which takes long if it has very
// many parameters.
const maxContentType = 1024

var ownContentTypes = []string{mediaJSON}
