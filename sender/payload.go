package sender

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"time"
	"unicode/utf8"
)

// Payload is the data of an event, with the event's type and the version of the data: see
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
// returns false if the body does not say which version its data is: then the data cannot
// be converted.
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

// joinBody makes a body of what SplitBody has returned, or of another payload.
func joinBody(head []byte, p Payload) []byte {
	b := make([]byte, 0, len(head)+len(payloadVersionName)+len(p.Version)+len(dataName)+len(p.Data)+2)
	return appendPayload(append(b, head...), p.Version, p.Data)
}

// Convert makes the data of an event of a type, published in the version from, into the
// data for a subscription that is pinned to a date. It returns the version of that data:
// the newest that was there on the date, or the oldest, which may have none: "". The data must
// be JSON in UTF-8: a delivery whose data is not is put off, as if Convert had failed. It must
// be a pure function, and quick. A *catalogue.Catalogue's Convert is one. A process that has no
// catalogue has nil.
type Convert func(eventType, from, date string, data json.RawMessage) (version string, converted json.RawMessage, err error)

// Body returns the body for a subscription that is pinned to a date, or to none, and the
// version of its data; "": the body does not say. It is made of the published body, and is
// that body if no conversion is needed. A panic of Convert is returned as an error, and so is
// data that is not JSON, or a version that is neither a date nor "".
func (c Convert) Body(eventType string, published []byte, pinned string) (body []byte, version string, err error) {
	head, p, ok := SplitBody(published)
	switch {
	case !ok || p.Version <= pinned || p.Data == nil || c == nil && pinned == "":
		return published, p.Version, nil
	case c == nil:
		return nil, "", fmt.Errorf("sender: the subscription is pinned to the payload version %q, and this process has no catalogue that could make it of %q: give all processes the same", pinned, p.Version)
	}
	version, data, err := c.data(eventType, p.Version, pinned, p.Data)
	switch {
	case err != nil:
		return nil, "", err
	case version == p.Version:
		return published, version, nil
	case !json.Valid(data) || !utf8.Valid(data):
		return nil, "", fmt.Errorf("sender: converting the data of %s from version %q to %q makes no JSON in UTF-8: have the converter make it, or return an error", eventType, p.Version, version)
	case nestedTooDeep(data):
		return nil, "", fmt.Errorf("sender: converting the data of %s from version %q to %q makes data with more than %d objects and arrays within each other: have the converter make less", eventType, p.Version, version, maxDepth)
	}
	if err := checkPayloadVersion(version); err != nil && version != "" {
		return nil, "", fmt.Errorf("sender: converting the data of %s from version %q makes another one, whose %w", eventType, p.Version, err)
	}
	return joinBody(head, Payload{Version: version, Data: data}), version, nil
}

func (c Convert) data(eventType, from, date string, data json.RawMessage) (version string, converted json.RawMessage, err error) {
	defer func() {
		if v := recover(); v != nil {
			text := fmt.Sprintf("%T", v) // its text may quote the data
			if e, ok := v.(runtime.Error); ok {
				text = e.Error()
			}
			err = fmt.Errorf("sender: converting the data of %s panicked: %s", eventType, text)
		}
	}()
	return c(eventType, from, date, data)
}
