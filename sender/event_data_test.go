package sender_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/race"
	"github.com/surehook/surehook/sender"
)

func dataOf(t *testing.T, data any) (string, error) {
	t.Helper()
	e := event()
	e.Data, e.OccurredAt = data, time.Unix(0, 0)
	d, err := e.Draft(time.Unix(0, 0), 1<<20)
	var body struct{ Data json.RawMessage }
	if err == nil {
		require.NoError(t, json.Unmarshal(d.Body(1), &body))
	}
	return string(body.Data), err
}

// nested returns JSON with so many objects and arrays within each other, in turns.
func nested(depth int) string {
	return strings.Repeat(`{"a":[`, depth/2) + strings.Repeat("]}", depth/2)
}

type invoice struct {
	Number string `json:"number"`
	Cents  int    `json:"cents"`
}

// failing counts how often it was asked for its JSON, and has none.
type failing struct{ asked *int }

func (f failing) MarshalJSON() ([]byte, error) {
	*f.asked++
	return nil, errors.New("it has none")
}

// counting counts how often it was asked for its JSON.
type counting struct{ asked *int }

func (c counting) MarshalJSON() ([]byte, error) { *c.asked++; return []byte(`"<&>"`), nil }

func TestEventDataIsAnyValueThatMarshals(t *testing.T) {
	asked := 0
	for name, c := range map[string]struct {
		data any
		want string
	}{
		"none":              {nil, ""},
		"nil RawMessage":    {json.RawMessage(nil), ""},
		"RawMessage":        {json.RawMessage(` {"b": 1.0e2, "a":"<é>"} `), `{"b": 1.0e2, "a":"<é>"}`},
		"struct":            {invoice{"7", 4200}, `{"number":"7","cents":4200}`},
		"pointer":           {&invoice{"7", 4200}, `{"number":"7","cents":4200}`},
		"nil pointer":       {(*invoice)(nil), "null"},
		"map":               {map[string]any{"b": 1, "a": nil}, `{"a":null,"b":1}`},
		"text":              {"é", `"é"`},
		"number":            {1.5, "1.5"},
		"its own JSON":      {counting{&asked}, "\"\\u003c\\u0026\\u003e\""},
		"a list of nobody":  {[]string{}, "[]"},
		"as deep as may be": {json.RawMessage(nested(500)), nested(500)},
		"long, not deep":    {json.RawMessage(`["` + strings.Repeat(`\"[{\\`, 600) + `"` + strings.Repeat(`,[{}]`, 600) + "]"), `["` + strings.Repeat(`\"[{\\`, 600) + `"` + strings.Repeat(`,[{}]`, 600) + "]"},
	} {
		got, err := dataOf(t, c.data)
		require.NoError(t, err, name)
		require.Equal(t, c.want, got, name)
	}
	require.Equal(t, 1, asked, "it is marshalled once")
}

func TestEventDataRefused(t *testing.T) {
	asked := 0
	for name, c := range map[string]struct {
		data any
		says string
	}{
		"bytes":                      {[]byte(`{"a":1}`), "data is a []byte: give json.RawMessage(data) if it is JSON, and else the value that it stands for"},
		"no bytes":                   {[]byte(nil), "data is a []byte"},
		"no JSON":                    {json.RawMessage(`{"a":`), "data is not valid JSON"},
		"no value":                   {math.Inf(1), "data, of type float64, cannot be marshalled: give a value that json.Marshal takes, or a json.RawMessage"},
		"a function":                 {func() {}, "data, of type func(), cannot be marshalled"},
		"a value that fails":         {failing{&asked}, "cannot be marshalled"},
		"no UTF-8":                   {json.RawMessage("\"\xff\""), "data is not valid UTF-8"},
		"too deep":                   {json.RawMessage(`["` + strings.Repeat("]", 600) + `",` + nested(500) + "]"), "more than 500 objects and arrays within each other"},
		"no UTF-8, in another value": {map[string]any{"a": json.RawMessage("\"\xff\"")}, "data is not valid UTF-8"},
	} {
		_, err := dataOf(t, c.data)
		require.ErrorIs(t, err, sender.ErrInvalidEvent, name)
		require.ErrorContains(t, err, c.says, name)
	}
	require.Equal(t, 1, asked)
	e := sender.Event{Data: []byte("{}")}
	_, err := e.Draft(time.Now(), 1<<20)
	for _, part := range []string{"event type is empty", "object id is empty", "data is a []byte"} {
		require.ErrorContains(t, err, part, "all problems at once")
	}
}

// JSON that is at hand costs no copy but the one into the body.
func TestEventDataCostsNoMore(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector has allocations of its own")
	}
	now, data := time.Now(), json.RawMessage(`{"a":"b"}`)
	draft := func(data any) func() {
		return func() {
			e := sender.Event{Type: "a.b", Object: sender.Object{Type: "c", ID: "1"}, OccurredAt: now}
			if raw, ok := data.(json.RawMessage); ok {
				e.Data = raw
			}
			if _, err := e.Draft(now, 1<<20); err != nil {
				t.Error(err)
			}
		}
	}
	thin, full := testing.AllocsPerRun(100, draft(nil)), testing.AllocsPerRun(100, draft(data))
	require.LessOrEqual(t, full-thin, 1.0, "%v without data, %v with it", thin, full)
}
