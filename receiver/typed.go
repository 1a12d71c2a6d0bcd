package receiver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Typed is an event with its data decoded. The data as it came is in Event.Data.
type Typed[T any] struct {
	Event
	Data T
}

func decodeData[T any](ev Event, strict bool) (Typed[T], error) {
	out := Typed[T]{Event: ev}
	if ev.Data == nil {
		if strict {
			return out, &dataError{text: "the event has no data"}
		}
		return out, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(ev.Data))
	if strict {
		decoder.DisallowUnknownFields()
	}
	if err := decoder.Decode(&out.Data); err != nil {
		return out, &dataError{text: fmt.Sprintf("the event's data does not fit a %T: %s", out.Data, problemOf(err)), err: err}
	}
	return out, nil
}

// dataError keeps values of the event out of its text, which goes to the log and
// into dead letters; errors.As finds what encoding/json said.
type dataError struct {
	text string
	err  error
}

func (e *dataError) Error() string { return "receiver: " + e.text }
func (e *dataError) Unwrap() error { return e.err }

func problemOf(err error) string {
	var mistyped *json.UnmarshalTypeError
	if errors.As(err, &mistyped) {
		kind, _, _ := strings.Cut(mistyped.Value, " ") // a number is followed by its digits
		if mistyped.Field == "" {
			return fmt.Sprintf("it is a JSON %s", kind)
		}
		return fmt.Sprintf("its field %s is a JSON %s and must be a %s", brief(mistyped.Field), kind, mistyped.Type)
	}
	// encoding/json has no type for this one.
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return "it has the field " + brief(strings.Trim(name, `"`)) + ", which that type has not"
	}
	return "a method of its type that decodes it refused it"
}

func brief(name string) string {
	const most = 64
	if len(name) > most {
		name = name[:most] + "…"
	}
	return strconv.Quote(name)
}
