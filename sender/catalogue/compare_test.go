package catalogue_test

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
	"github.com/surehook/surehook/sender/catalogue/shop"
	"github.com/surehook/surehook/sender/filter"
)

// state is a type with a version that has a schema.
func state(schema string) []catalogue.Type {
	t := catalogue.Type{Name: "a.b", Object: "a", Kind: catalogue.State, Versions: []catalogue.Version{{Examples: []catalogue.Example{{ObjectID: "1", Data: json.RawMessage("{}")}}}}}
	if schema != "" {
		t.Versions[0].Schema = json.RawMessage(schema)
	}
	return []catalogue.Type{t}
}

// lines are the changes, with an exclamation mark before those that break somebody.
func lines(changes []catalogue.Change) (all []string) {
	for _, c := range changes {
		mark := "  "
		if c.Breaks {
			mark = "! "
		}
		all = append(all, mark+c.String())
	}
	return all
}

func TestCompareSchemas(t *testing.T) {
	for _, c := range []struct {
		before, after string
		want          []string
	}{
		{`{"type":"object"}`, `{"type":"object"}`, nil},
		{`{"title":"x","properties":{"a":{}}}`, `{"description":"y","properties":{"a":{"description":"z"}}}`, nil},
		{"", `{"type":"object"}`, nil},
		{`{"type":"object"}`, "", []string{"! a.b: it was of type object, and may be of any"}},
		{`{"type":"number"}`, `{"type":"integer"}`, nil},
		{`{"type":"integer"}`, `{"type":"number"}`, []string{"! a.b: it was of type integer, and is of type number"}},
		{`{"type":["integer","null"]}`, `{"type":"integer"}`, nil},
		{`{"type":"integer"}`, `{"type":["integer","null"]}`, []string{"! a.b: it was of type integer, and is of type integer or null"}},
		{`{"properties":{"a":{"type":"object","properties":{"b":{"type":"string"}}}}}`, `{"properties":{"a":{"type":"object","properties":{"b":{"type":"integer"},"c":{}}}}}`,
			[]string{"! a.b, /a/b: it was of type string, and is of type integer", "  a.b, /a/c: it is new"}},
		{`{"properties":{"a":{}}}`, `{"properties":{}}`, []string{"! a.b, /a: it is gone"}},
		{`{"additionalProperties":false}`, `{"additionalProperties":false,"properties":{"a":{}}}`, []string{"! a.b, /a: it is new, and there were to be no others"}},
		{`{"required":["a"],"properties":{"a":{}}}`, `{"properties":{"a":{}}}`, []string{"! a.b, /a: it was always there, and may be absent"}},
		{`{"properties":{"a":{}}}`, `{"required":["a"],"properties":{"a":{}}}`, nil},
		{`{"enum":["x","y"]}`, `{"enum":["x"]}`, nil},
		{`{"enum":["x"]}`, `{"enum":["x","y",1]}`, []string{`! a.b: it may be "y",1 now, besides "x"`}},
		{`{"enum":["x"]}`, `{"const":"x"}`, nil},
		{`{"const":"x"}`, `{"type":"string"}`, []string{`! a.b: it was one of "x", and may be another value`}},
		{`{"items":{"type":"string"}}`, `{"items":{"type":"integer"}}`, []string{"! a.b, /[]: it was of type string, and is of type integer"}},
		{`{"items":{"type":"string"}}`, `{}`, []string{"! a.b, /[]: it was of type string, and may be of any"}},
		{`{"maximum":5}`, `{"maximum":6}`, []string{"! a.b: maximum was changed: compare by hand what it allows"}},
		{`{"maximum":9007199254740992}`, `{"maximum":9007199254740993}`, []string{"! a.b: maximum was changed: compare by hand what it allows"}},
		{`{}`, `{"maximum":6}`, []string{"  a.b: maximum is new, and only takes values away"}},
		{`{"format":"email"}`, `{}`, []string{"! a.b: format is gone, which allowed less"}},
		{`{}`, `{"anyOf":[{}]}`, []string{"! a.b: anyOf is new: compare by hand what it allows"}},
		{`{"additionalProperties":true}`, `{"additionalProperties":false}`, []string{"  a.b: there are no further properties now"}},
		{`{"properties":{"a":{"$ref":"#/$defs/x~1y"}},"$defs":{"x/y":{"type":"string"}}}`, `{"properties":{"a":{"type":"string"}}}`, nil},
		{`{"properties":{"a":{"$ref":"#/$defs/m"}},"$defs":{"m":{"type":"string"}}}`, `{"properties":{"a":{"$ref":"#/$defs/m"}},"$defs":{"m":{"type":"integer"}}}`,
			[]string{"! a.b, /a: it was of type string, and is of type integer"}},
		{`{"properties":{"next":{"$ref":"#"},"v":{"type":"string"}}}`, `{"properties":{"next":{"$ref":"#"},"v":{"type":"string"}}}`, nil},
		{`{"required":["a"]}`, `{}`, []string{"! a.b, /a: it was always there, and may be absent"}},
		{`{"required":["a"],"properties":{"a":{}}}`, `{}`, []string{"! a.b, /a: it is gone"}},
		{`{"anyOf":[{"$ref":"#/$defs/m"}],"$defs":{"m":{"type":"string"}}}`, `{"anyOf":[{"$ref":"#/$defs/m"}],"$defs":{"m":{"type":"integer"}}}`,
			[]string{"! a.b: anyOf was changed: compare by hand what it allows"}},
		{`{"oneOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"items":{"$ref":"#/$defs/a"},"maximum":1}}}`,
			`{"oneOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"items":{"$ref":"#/$defs/a"},"maximum":2}}}`,
			[]string{"! a.b: oneOf was changed: compare by hand what it allows"}},
		{`{"additionalProperties":{"$ref":"#/$defs/m"},"$defs":{"m":{"title":"x","type":"string"}}}`, `{"additionalProperties":{"$ref":"#/$defs/m"},"$defs":{"m":{"title":"y","type":"string"}}}`, nil},
		{`{"anyOf":[{"title":"x","properties":{"title":{}},"const":{"title":1}}]}`, `{"anyOf":[{"properties":{"title":{}},"const":{"title":1}}]}`, nil},
		{`{"anyOf":[{"properties":{"title":{}}}]}`, `{"anyOf":[{"properties":{}}]}`, []string{"! a.b: anyOf was changed: compare by hand what it allows"}},
		{`{"anyOf":[{"const":{"title":1}}]}`, `{"anyOf":[{"const":{"title":2}}]}`, []string{"! a.b: anyOf was changed: compare by hand what it allows"}},
		{`{"prefixItems":[{"type":"string"}],"properties":{"a":{"$ref":"#/prefixItems/0"}}}`, `{"prefixItems":[{"type":"string"}],"properties":{"a":{"type":"integer"}}}`,
			[]string{"! a.b, /a: it was of type string, and is of type integer"}},
		{
			`{"properties":{"left":{"$ref":"#"},"right":{"$ref":"#"},"list":{"items":{"$ref":"#"}},"v":{"type":"string"}}}`,
			`{"properties":{"left":{"$ref":"#"},"right":{"$ref":"#"},"list":{"items":{"$ref":"#"}},"v":{"type":"string"},"w":{}}}`,
			[]string{"  a.b, /w: it is new"},
		},
		{`{"properties":{"a":{"$ref":"#/$defs/m","maximum":1}},"$defs":{"m":{"type":"integer"}}}`, `{"properties":{"a":{"$ref":"#/$defs/m","title":"x","maximum":1}},"$defs":{"m":{"type":"integer"}}}`, nil},
		{`{"properties":{"a":{"$ref":"#/$defs/m","maximum":1}},"$defs":{"m":{"type":"integer"}}}`, `{"properties":{"a":{"$ref":"#/$defs/m"}},"$defs":{"m":{"type":"integer"}}}`,
			[]string{"! a.b, /a: a reference that is not followed stands in it: compare by hand what it allows"}},
		{`{"properties":{"a":{"$ref":"#/$defs/l"}},"$defs":{"l":{"$ref":"#/$defs/m","required":["x"]},"m":{}}}`, `{"properties":{"a":{"$ref":"#/$defs/l"}},"$defs":{"l":{"$ref":"#/$defs/m"},"m":{}}}`,
			[]string{"! a.b, /a: a reference that is not followed stands in it: compare by hand what it allows"}},
		{`{"properties":{"a":{"$ref":"#money"}},"$defs":{"title":{"$anchor":"money","type":"integer"}}}`, `{"properties":{"a":{"$ref":"#money"}},"$defs":{"title":{"$anchor":"money","type":"string"}}}`,
			[]string{"! a.b, /a: a reference that is not followed stands in it: compare by hand what it allows"}},
		{`{"anyOf":[{"$dynamicRef":"#money"}],"$defs":{"m":{"$dynamicAnchor":"money","type":"integer"}}}`, `{"anyOf":[{"$dynamicRef":"#money"}],"$defs":{"m":{"$dynamicAnchor":"money","type":"string"}}}`,
			[]string{"! a.b: anyOf was changed: compare by hand what it allows"}},
		{`{"properties":{"a":{"$ref":"#money"}},"$defs":{"m":{"$anchor":"money"}}}`, `{"title":"x","properties":{"a":{"$ref":"#money"}},"$defs":{"m":{"$anchor":"money","title":"y"}}}`, nil},
		{`{"additionalProperties":{"type":"string"}}`, `{"additionalProperties":{"type":"string"},"properties":{"a":{"type":"string"},"b":{"type":"integer"}}}`,
			[]string{"  a.b, /a: it is new", "  a.b, /b: it is new", "! a.b, /b: it was of type string, and is of type integer"}},
		// As generators of schemas write a name that has other characters than a URI may have.
		{`{"properties":{"a":{"$ref":"#/$defs/List%3CMoney%3E"}},"$defs":{"List<Money>":{"type":"string"}}}`, `{"properties":{"a":{"$ref":"#/$defs/List%3CMoney%3E"}},"$defs":{"List<Money>":{"type":"integer"}}}`,
			[]string{"! a.b, /a: it was of type string, and is of type integer"}},
		{`{"properties":{"a":{"$ref":"#/$defs/gone"}}}`, `{"properties":{"a":{"$ref":"#/$defs/gone"}}}`, nil},
		{`{"properties":{"a":{"$ref":"#/$defs/gone"}}}`, `{"properties":{"a":{"$ref":"#/$defs/gone"}},"$defs":{"gone":{"type":"string"}}}`,
			[]string{"! a.b, /a: a reference that is not followed stands in it: compare by hand what it allows"}},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`, `{"$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}`,
			[]string{"! a.b: a reference that is not followed stands in it: compare by hand what it allows"}},
		{`{"unevaluatedProperties":false}`, `{"unevaluatedProperties":false,"properties":{"a":{}}}`, []string{"! a.b, /a: it is new, and there were to be no others"}},
		{`{"unevaluatedProperties":{"type":"string"}}`, `{"unevaluatedProperties":{"type":"string"},"properties":{"a":{"type":"integer"}}}`, []string{"  a.b, /a: it is new", "! a.b, /a: it was of type string, and is of type integer"}},
		{`{"unevaluatedProperties":false}`, `{"unevaluatedProperties":false,"additionalProperties":true}`, []string{"! a.b: additionalProperties is new: compare by hand what it allows"}},
		{`{"unevaluatedProperties":false,"additionalProperties":true}`, `{"unevaluatedProperties":false,"additionalProperties":true,"properties":{"a":{}}}`, []string{"  a.b, /a: it is new"}},
		{`{"unevaluatedItems":{"type":"string"}}`, `{"unevaluatedItems":{"type":"string"},"items":{"type":"integer"}}`, []string{"! a.b, /[]: it was of type string, and is of type integer"}},
		{`{"dependentRequired":{"title":["name"]}}`, `{"dependentRequired":{"title":[]}}`, []string{"! a.b: dependentRequired was changed: compare by hand what it allows"}},
		{`{"type":"string"}`, `{"enum":["x","y"]}`, nil},
		{`{"type":["integer","null"]}`, `{"enum":[1,null]}`, nil},
		{`{"type":"integer"}`, `{"enum":[1,2.5,{},[],true,"x"]}`, []string{"! a.b: it was of type integer, and is of type integer or number or object or array or boolean or string"}},
		{`false`, `{}`, []string{"! a.b: there was to be nothing, and now there is"}},
		{`{}`, `false`, nil},
	} {
		require.Equal(t, c.want, lines(catalogue.Compare(state(c.before), state(c.after))), "%s → %s", c.before, c.after)
	}
}

// Schemas whose parts refer to each other in very many ways are compared all the same.
func TestCompareEntangledSchemas(t *testing.T) {
	entangled := func(last string) string {
		defs := []string{`"d30":` + last}
		for i := range 30 {
			defs = append(defs, fmt.Sprintf(`"d%d":{"properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}}}`, i, i+1, i+1))
		}
		return `{"$ref":"#/$defs/d0","$defs":{` + strings.Join(defs, ",") + `}}`
	}
	require.Empty(t, catalogue.Compare(state(entangled(`{"type":"string"}`)), state(entangled(`{"type":"string"}`))))
	changes := lines(catalogue.Compare(state(entangled(`{"type":"string"}`)), state(entangled(`{"type":"integer"}`))))
	require.Contains(t, changes, "! a.b: there are more than 500 changes: compare the rest by hand")
	require.Contains(t, changes, "! a.b, "+strings.Repeat("/a", 30)+": it was of type string, and is of type integer")
}

func TestCompareTypes(t *testing.T) {
	changed := func(f func(*catalogue.Type)) []catalogue.Type {
		one := paid()
		f(&one)
		return []catalogue.Type{one, thin()}
	}
	before := []catalogue.Type{paid(), thin()}
	require.Empty(t, catalogue.Compare(before, before))
	for _, c := range []struct {
		after       []catalogue.Type
		want        string
		from, until string
	}{
		{[]catalogue.Type{paid()}, "! user.updated: the type is gone", "", ""},
		{append(changed(func(*catalogue.Type) {}), state("")...), "  a.b: the type is new", "", ""},
		{changed(func(t *catalogue.Type) { t.Kind = catalogue.Fact }), "! invoice.paid: its kind was state, and is fact", "", ""},
		{changed(func(t *catalogue.Type) { t.Object = "bill" }), "! invoice.paid: its objects were of the type invoice, and are of the type bill", "", ""},
		{changed(func(t *catalogue.Type) { t.Deprecated = "Use x." }), "  invoice.paid: it is deprecated now: Use x.", "", ""},
		{changed(func(t *catalogue.Type) { t.Versions = t.Versions[1:] }), `! invoice.paid: the version is gone: they get version "2025-03-01"`, "", "2025-03-01"},
		{changed(func(t *catalogue.Type) { t.Versions = t.Versions[:2] }), `! invoice.paid, version 2026-11-25: the version is gone: they get version "2025-03-01"`, "2026-11-25", ""},
		{changed(func(t *catalogue.Type) {
			t.Versions[1].Schema = json.RawMessage(`{"type":"object","required":["amount"],"properties":{"amount":{"type":"string"}}}`)
		}), "! invoice.paid, version 2025-03-01, /amount: it was of type integer, and is of type string", "2025-03-01", "2026-11-25"},
		{changed(func(t *catalogue.Type) {
			t.Versions = append(t.Versions, catalogue.Version{Since: "2026-11-26"})
		}), "  invoice.paid, version 2026-11-26: the version is new", "", ""},
		{changed(func(t *catalogue.Type) {
			t.Versions = []catalogue.Version{t.Versions[0], t.Versions[1], {Since: "2026-01-01"}, t.Versions[2]}
		}), "! invoice.paid, version 2026-01-01: the version is new, and not newer than 2026-11-25, to which customers are pinned already: give it a later date", "2026-01-01", "2026-11-25"},
	} {
		got := catalogue.Compare(before, c.after)
		require.Equal(t, []string{c.want}, lines(got))
		require.Equal(t, [2]string{c.from, c.until}, [2]string{got[0].From, got[0].Until}, c.want)
	}
}

// pages lists subscriptions, two at a time.
type pages []sender.Subscription

func (p pages) Subscriptions(_ context.Context, q sender.SubscriptionQuery) ([]sender.Subscription, string, error) {
	if p == nil {
		return nil, "", errors.New("away")
	}
	from := len(q.Cursor)
	to := min(from+2, len(p))
	next := ""
	if to < len(p) {
		next = "xxxxxxxxxx"[:to]
	}
	return p[from:to], next, nil
}

// A change breaks the subscriptions that get its type in the version that was changed.
func TestFindBroken(t *testing.T) {
	c, err := shop.New()
	require.NoError(t, err)
	before, after := c.Types(), c.Types()
	for i := range after {
		if after[i].Name == "invoice.paid" {
			after[i].Versions[0].Schema = nil
		}
	}
	changes := catalogue.Compare(before, after)
	require.NotEmpty(t, changes)
	sub := func(id, pinned string, types ...string) sender.Subscription {
		return sender.Subscription{ID: id, EventTypes: types, Settings: sender.Settings{PayloadVersion: pinned}}
	}
	broken, err := catalogue.FindBroken(t.Context(), pages{
		sub("oldest", "", "*"), sub("first", shop.First, "invoice.*"), sub("between", "2026-01-01", "order.*", "invoice.paid"),
		sub("newest", shop.Second, "*"), sub("other", shop.First, "order.*", "invoice"),
	}, changes)
	require.NoError(t, err)
	var ids []string
	for _, b := range broken {
		ids = append(ids, b.Subscription.ID)
		require.Equal(t, changes, b.Changes)
	}
	require.Equal(t, []string{"oldest", "first", "between"}, ids)
	_, err = catalogue.FindBroken(t.Context(), pages(nil), changes)
	require.ErrorContains(t, err, "away")
}

// A new version breaks nobody, also not those who filter by the data of the type: filters decide
// by the version that their subscription gets.
func TestFindBrokenFilters(t *testing.T) {
	before := []catalogue.Type{paid(), thin()}
	after := []catalogue.Type{paid(), thin()}
	after[0].Versions = append(after[0].Versions, catalogue.Version{Since: "2026-12-24"})
	changes := catalogue.Compare(before, after)
	require.Equal(t, []string{"  invoice.paid, version 2026-12-24: the version is new"}, lines(changes))
	sub := func(id, expression string, types ...string) sender.Subscription {
		return sender.Subscription{ID: id, EventTypes: types, Filter: filter.Read(expression)}
	}
	broken, err := catalogue.FindBroken(t.Context(), pages{
		sub("none", "", "*"), sub("data", `{"data.total":{"gte":1}}`, "invoice.*"), sub("object", `{"object.id":"data"}`, "*"), sub("other", `{"data.total":1}`, "user.*"),
	}, changes)
	require.NoError(t, err)
	require.Empty(t, broken)
}
