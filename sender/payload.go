package sender

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Payload is the data of an event, with its type and the version of it that it is: see
// Event.PayloadVersion. Data is nil for a thin event.
type Payload struct {
	Type    string
	Version string
	Data    json.RawMessage
}

const (
	payloadVersionName = `,"payload_version":"`
	dataName           = `,"data":`
)

// appendPayload ends a body with a payload.
func appendPayload(b []byte, version string, data json.RawMessage) []byte {
	if version != "" {
		b = append(append(append(b, payloadVersionName...), version...), '"')
	}
	if data != nil {
		b = append(append(b, dataName...), data...)
	}
	return append(b, '}')
}

// checkPayloadVersion reports what is wrong with a date of a payload's version, or nil.
func checkPayloadVersion(version string) error {
	if _, err := time.Parse(time.DateOnly, version); err != nil || len(version) != len(time.DateOnly) {
		return fmt.Errorf("payload version is %q: it must be a date as 2026-11-25", version)
	}
	return nil
}

// SplitBody takes the payload of an event's body apart. The payload's Type is empty. It
// returns false if the body does not say which version its data is: then nothing is known of
// the data, and nothing can be made of it.
func SplitBody(body []byte) (head []byte, p Payload, ok bool) {
	// Quotation marks within strings are escaped, so these bytes stand nowhere else, but in
	// the data.
	head, rest, ok := bytes.Cut(body, []byte(payloadVersionName))
	if !ok || bytes.Contains(head, []byte(dataName)) {
		return nil, Payload{}, false
	}
	version, rest, ok := bytes.Cut(rest, []byte{'"'})
	if !ok || checkPayloadVersion(string(version)) != nil {
		return nil, Payload{}, false
	}
	p.Version = string(version)
	if data, ok := bytes.CutPrefix(bytes.TrimSuffix(rest, []byte{'}'}), []byte(dataName)); ok {
		p.Data = data
	}
	return head, p, true
}

// JoinBody makes a body of what SplitBody has returned, or of another payload.
func JoinBody(head []byte, p Payload) []byte {
	b := make([]byte, 0, len(head)+len(payloadVersionName)+len(p.Version)+len(dataName)+len(p.Data)+2)
	return appendPayload(append(b, head...), p.Version, p.Data)
}
