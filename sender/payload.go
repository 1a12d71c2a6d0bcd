package sender

import (
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
