package sns

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

// message is what a body states, before anything of it is verified.
type message struct {
	fields    map[string]string
	at        time.Time
	signature []byte
}

const (
	notification = "Notification"
	confirm      = "SubscriptionConfirmation"
	unsubscribe  = "UnsubscribeConfirmation"
	maxLine      = 2048
	maxNames     = 64   // of a body, which anybody can post: Amazon's have eleven at most
	maxSignature = 1024 // bytes: of a key of 8192 bits
)

func known(kind string) bool { return kind == notification || kind == confirm || kind == unsubscribe }

// signed are the fields whose names and values are signed, in their order. The Subject is
// signed only if there is one.
var signed = map[string][]string{
	notification: {"Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"},
	confirm:      {"Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"},
	unsubscribe:  {"Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"},
}

var timeForm = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$`)

// parse reads the fields that matter. The signed text separates its lines by line feeds, and
// Message may have some: so no other field may, or the text could be split in two ways.
func parse(body []byte) (*message, error) {
	fields, err := members(body)
	if err != nil {
		return nil, err
	}
	m := &message{fields: fields}
	if !known(fields["Type"]) {
		return nil, errors.New("sns: its Type must be Notification, SubscriptionConfirmation or UnsubscribeConfirmation")
	}
	for _, name := range append([]string{"SignatureVersion", "SigningCertURL"}, signed[fields["Type"]]...) {
		value, there := fields[name]
		if !there && name != "Subject" {
			return nil, fmt.Errorf("sns: it has no %s", name)
		}
		if name != "Message" && (len(value) > maxLine || strings.ContainsAny(value, "\r\n")) {
			return nil, fmt.Errorf("sns: its %s is no line of at most %d bytes", name, maxLine)
		}
	}
	if !timeForm.MatchString(fields["Timestamp"]) {
		return nil, errors.New("sns: its Timestamp is not like 2012-04-26T20:45:04.751Z")
	}
	if m.at, err = time.Parse(time.RFC3339, fields["Timestamp"]); err != nil {
		return nil, errors.New("sns: its Timestamp is no time")
	}
	text := fields["Signature"]
	if len(text) > base64.StdEncoding.EncodedLen(maxSignature) || strings.ContainsAny(text, "\r\n") {
		return nil, errors.New("sns: its Signature is too long")
	}
	if m.signature, err = base64.StdEncoding.Strict().DecodeString(text); err != nil || len(m.signature) == 0 {
		return nil, errors.New("sns: its Signature is not base64")
	}
	return m, nil
}

// members reads the texts of an object. It refuses a name that is there twice, in whatever
// spelling of its characters: another reader may take the other one.
func members(body []byte) (map[string]string, error) {
	if !utf8.Valid(body) || !json.Valid(body) {
		return nil, errors.New("sns: the body is not JSON")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.New("sns: the body is no JSON object")
	}
	fields, seen := map[string]string{}, map[string]bool{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, errors.New("sns: the body is not JSON")
		}
		text, _ := name.(string)
		if seen[strings.ToLower(text)] {
			return nil, errors.New("sns: the body has a name twice")
		}
		if seen[strings.ToLower(text)] = true; len(seen) > maxNames {
			return nil, fmt.Errorf("sns: the body has more than %d names", maxNames)
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, errors.New("sns: the body is not JSON")
		}
		var value string
		if raw[0] == '"' && json.Unmarshal(raw, &value) == nil {
			fields[text] = value
		}
	}
	return fields, nil
}

// text is what is signed.
func (m *message) text() []byte {
	var b bytes.Buffer
	for _, name := range signed[m.fields["Type"]] {
		value, there := m.fields[name]
		if !there {
			continue
		}
		b.WriteString(name)
		b.WriteByte('\n')
		b.WriteString(value)
		b.WriteByte('\n')
	}
	return b.Bytes()
}
