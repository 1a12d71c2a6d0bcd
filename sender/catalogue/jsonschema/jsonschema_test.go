package jsonschema_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/catalogue"
	"github.com/surehook/surehook/sender/catalogue/jsonschema"
	"github.com/surehook/surehook/sender/catalogue/shop"
	"github.com/surehook/surehook/sender/memory"
)

func example(data string) []catalogue.Example {
	return []catalogue.Example{{ObjectID: "in_1", Data: json.RawMessage(data)}}
}

func types() []catalogue.Type {
	return []catalogue.Type{
		{Name: "invoice.paid", Object: "invoice", Kind: catalogue.State, Versions: []catalogue.Version{
			{Schema: json.RawMessage(`{"required":["sum"],"properties":{"sum":{"type":"integer"}}}`), Examples: example(`{"sum":1}`)},
			{
				Since: "2026-11-25",
				Schema: json.RawMessage(`{"type":"object","required":["total"],"additionalProperties":false,"properties":{
					"total":{"$ref":"#/$defs/money"},"lines":{"type":"array","items":{"properties":{"a/b":{"type":"string","pattern":"^x"}}}},
					"email":{"type":"string","format":"email"},"count":{"minimum":3}},"$defs":{"money":{"type":"integer","maximum":9007199254740992}}}`),
				Examples: example(`{"total":1}`),
				Down: catalogue.Converter(func(v struct{ Total json.RawMessage }) (map[string]json.RawMessage, error) {
					return map[string]json.RawMessage{"sum": v.Total}, nil
				}),
			},
		}},
		{Name: "user.updated", Object: "user", Kind: catalogue.Thin, Versions: []catalogue.Version{{Examples: []catalogue.Example{{ObjectID: "u"}}}}},
		{Name: "order.made", Object: "order", Kind: catalogue.Fact, Versions: []catalogue.Version{{Examples: example(`1`)}}},
	}
}

func checker(t *testing.T) *jsonschema.Checker {
	t.Helper()
	c, err := catalogue.New(types())
	require.NoError(t, err)
	k, err := jsonschema.New(c)
	require.NoError(t, err)
	return k
}

func TestCheck(t *testing.T) {
	k := checker(t)
	for _, c := range []struct{ eventType, version, data, want string }{
		{"invoice.paid", "2026-11-25", `{"total":1}`, ""},
		{"invoice.paid", "", `{"sum":1}`, ""},
		{"order.made", "", `"anything"`, ""},
		{"user.updated", "", "", ""},
		{"job.completed", "", "{}", ""},
		{"invoice.paid", "2026-11-25", `{"sum":1}`, "data of invoice.paid, version 2026-11-25: missing property 'total'; additional properties 'sum' not allowed"},
		{"invoice.paid", "2026-11-25", `{"total":"secret"}`, "data of invoice.paid, version 2026-11-25: at /total: got string, want integer"},
		{"invoice.paid", "2026-11-25", `{"total":9007199254740993}`, "data of invoice.paid, version 2026-11-25: at /total: it must be at most 9007199254740992"},
		{"invoice.paid", "2026-11-25", `{"total":1,"lines":[{},{"a/b":"secret"}]}`, `data of invoice.paid, version 2026-11-25: at /lines/1/a~1b: it must match the pattern "^x"`},
		{"invoice.paid", "2026-11-25", `{"total":1,"email":"secret"}`, "data of invoice.paid, version 2026-11-25: at /email: it must have the format email"},
		{"invoice.paid", "2026-11-25", `{"total":1,"count":2}`, "data of invoice.paid, version 2026-11-25: at /count: it must be at least 3"},
		{"invoice.paid", "2026-11-25", `{"total":1,"count":1e2000000}`, "data of invoice.paid, version 2026-11-25: at /count: the exponent of the number is beyond ±1000"},
		{"invoice.paid", "2026-11-25", `{"total":1,"lines":[{"a/b":"x"},{"c/d":[1,1E-1001]}]}`, "data of invoice.paid, version 2026-11-25: at /lines/1/c~1d/1: the exponent of the number is beyond ±1000"},
		{"invoice.paid", "2026-11-25", `{"total":1,"count":1e99999999999999999999}`, "data of invoice.paid, version 2026-11-25: at /count: the exponent of the number is beyond ±1000"},
		{"invoice.paid", "2026-11-25", `{"total":1,"count":1e+1000}`, ""},
		{"invoice.paid", "2026-11-25", `{"total":1,"count":` + strings.Repeat("9", 1000) + `}`, ""},
		{"invoice.paid", "2026-11-25", `{"total":1,"count":` + strings.Repeat("9", 1_000_000) + `}`, "data of invoice.paid, version 2026-11-25: at /count: the number has 1000000 characters: at most 1000 are allowed"},
		{"invoice.paid", "2026-11-24", `{"total":1}`, "data of invoice.paid, version 2026-11-24: the catalogue has no such version of the type"},
		{"invoice.made", "", `{"total":1}`, "data of invoice.made: the catalogue has no such type"},
		{"invoice.paid", "2026-11-25", "", "data of invoice.paid, version 2026-11-25: the event has no data, and the type is not thin"},
		{"user.updated", "", "{}", "data of user.updated: the type is thin, and the event has data"},
	} {
		var data json.RawMessage
		if c.data != "" {
			data = json.RawMessage(c.data)
		}
		got := ""
		if err := k.Check(c.eventType, c.version, data); err != nil {
			got = err.Error()
		}
		require.Equal(t, c.want, got)
	}
}

// The examples of the shop, and all that its converters make of them, fit their schemas.
func TestShop(t *testing.T) {
	c, err := shop.New()
	require.NoError(t, err)
	k, err := jsonschema.New(c)
	require.NoError(t, err)
	require.ErrorContains(t, k.Check("invoice.paid", shop.Second, json.RawMessage(`{"id":"in_1","total":4200}`)), "at /total: got number, want object")
}

func TestNewRefuses(t *testing.T) {
	_, err := jsonschema.New(nil)
	require.ErrorContains(t, err, "needs a catalogue")
	for want, change := range map[string]func(v *catalogue.Version){
		`type "invoice.paid", version "2026-11-25": Schema`: func(v *catalogue.Version) { v.Schema = json.RawMessage(`{"type":"whole"}`) },
		"put what it needs under $defs":                     func(v *catalogue.Version) { v.Schema = json.RawMessage(`{"$ref":"file:///etc/passwd"}`) },
		`example "other" of version "2026-11-25": data of invoice.paid, version 2026`: func(v *catalogue.Version) {
			v.Examples[0] = catalogue.Example{Name: "other", ObjectID: "in_1", Data: json.RawMessage(`{"total":1.5}`)}
		},
		`example "other" of version "2026-11-25": data of invoice.paid: at /sum`: func(v *catalogue.Version) {
			v.Schema = nil
			v.Examples = []catalogue.Example{{Name: "other", ObjectID: "in_1", Data: json.RawMessage(`{"total":1.5}`)}}
		},
	} {
		all := types()
		change(&all[0].Versions[1])
		c, err := catalogue.New(all)
		if err == nil {
			_, err = jsonschema.New(c)
		}
		require.ErrorContains(t, err, want)
	}
}

// Versions and types may share a schema's $id, as where one file describes an object. Each is
// checked by its own.
func TestSchemasWithOneID(t *testing.T) {
	version := func(since, money string) catalogue.Version {
		return catalogue.Version{Since: since, Schema: json.RawMessage(`{"$id":"https://example.com/invoice.json","properties":{"total":{"$ref":"https://example.com/invoice.json#/$defs/money"},"tax":{"$ref":"#/$defs/money"}},"$defs":{"money":{"type":"` + money + `"}}}`), Examples: example(`{}`)}
	}
	all := []catalogue.Type{}
	for _, name := range []string{"invoice.paid", "invoice.sent"} {
		newer := version("2026-11-25", "object")
		newer.Down = func(data json.RawMessage) (json.RawMessage, error) { return data, nil }
		all = append(all, catalogue.Type{Name: name, Object: "invoice", Kind: catalogue.State, Versions: []catalogue.Version{version("", "integer"), newer}})
	}
	c, err := catalogue.New(all)
	require.NoError(t, err)
	k, err := jsonschema.New(c)
	require.NoError(t, err)
	for _, one := range all {
		for _, field := range []string{"total", "tax"} {
			require.NoError(t, k.Check(one.Name, "", json.RawMessage(`{"`+field+`":1}`)))
			require.NoError(t, k.Check(one.Name, "2026-11-25", json.RawMessage(`{"`+field+`":{}}`)))
			require.ErrorContains(t, k.Check(one.Name, "", json.RawMessage(`{"`+field+`":{}}`)), "want integer")
			require.ErrorContains(t, k.Check(one.Name, "2026-11-25", json.RawMessage(`{"`+field+`":1}`)), "want object")
		}
	}
}

type told struct{ failed []string }

func (*told) Helper() {}
func (f *told) Errorf(format string, args ...any) {
	f.failed = append(f.failed, fmt.Sprintf(format, args...))
}

func TestModes(t *testing.T) {
	k := checker(t)
	var reports []string
	sampled, err := k.Sampled(1, func(_ context.Context, e *jsonschema.Error) { reports = append(reports, e.Problems[0].Path) })
	require.NoError(t, err)
	failed := &told{}
	for name, check := range map[string]func(context.Context, sender.Payload) error{"always": k.Always(), "sampled": sampled, "in test": k.InTest(failed)} {
		store, err := memory.New(nil)
		require.NoError(t, err)
		pub, err := sender.NewPublisher(store, &sender.PublisherConfig{Check: check, PayloadVersion: func(string) string { return "2026-11-25" }})
		require.NoError(t, err)
		publish := func(data string) error {
			_, err := pub.Publish(t.Context(), sender.Event{Type: "invoice.paid", Object: sender.Object{Type: "invoice", ID: "in_1"}, Data: json.RawMessage(data)})
			return err
		}
		require.NoError(t, publish(`{"total":1}`), name)
		err = publish(`{"total":"1"}`)
		if name == "sampled" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, sender.ErrInvalidEvent, name)
		var wrong *jsonschema.Error
		require.True(t, errors.As(err, &wrong), name)
		require.Equal(t, "/total", wrong.Problems[0].Path)
	}
	require.Equal(t, []string{"/total"}, reports)
	require.Len(t, failed.failed, 1)
	require.Contains(t, failed.failed[0], "at /total")

	few := 0
	tenth, err := k.Sampled(0.1, func(context.Context, *jsonschema.Error) { few++ })
	require.NoError(t, err)
	for range 2000 {
		require.NoError(t, tenth(t.Context(), sender.Payload{Type: "unknown"}))
	}
	require.Greater(t, few, 50)
	require.Less(t, few, 500)
	for _, share := range []float64{0, -1, 1.1} {
		_, err := k.Sampled(share, func(context.Context, *jsonschema.Error) {})
		require.ErrorContains(t, err, "at most 1")
	}
	_, err = k.Sampled(1, nil)
	require.ErrorContains(t, err, "needs a function")
}
