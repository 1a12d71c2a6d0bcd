package jsonschema_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	library "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/catalogue"
)

// drawn draws schemas and data from few names and values, so that much of the data fits.
type drawn struct{ *rand.Rand }

func oneOf[T any](g drawn, all ...T) T { return all[g.IntN(len(all))] }

func (g drawn) scalar() any { return oneOf[any](g, 1, 2, 2.5, "x", "xy", "", true, nil) }

func (g drawn) name() string { return oneOf(g, "a", "b", "title", "c d") }

func (g drawn) value(depth int) any {
	switch kind := g.IntN(5); {
	case depth > 0 && kind < 2:
		all := map[string]any{}
		for range g.IntN(4) {
			all[g.name()] = g.value(depth - 1)
		}
		return all
	case depth > 0 && kind == 2:
		list := []any{}
		for range g.IntN(3) {
			list = append(list, g.value(depth-1))
		}
		return list
	}
	return g.scalar()
}

// schemaOf draws a schema that may refer to the definitions of its document.
func (g drawn) schemaOf(depth int) any {
	if g.IntN(12) == 0 {
		return g.IntN(3) > 0
	}
	all := map[string]any{}
	for range g.IntN(4) {
		g.keyword(all, depth)
	}
	return all
}

// keyword gives a schema another keyword, or another value of one that it has.
func (g drawn) keyword(all map[string]any, depth int) {
	inner := func() any {
		if depth == 0 {
			return map[string]any{"type": g.types()}
		}
		return g.schemaOf(depth - 1)
	}
	named := func() map[string]any {
		all := map[string]any{}
		for range 1 + g.IntN(2) {
			all[g.name()] = inner()
		}
		return all
	}
	key := oneOf(g, "type", "properties", "properties", "required", "items", "enum", "const", "additionalProperties", "unevaluatedProperties", "unevaluatedItems", "prefixItems",
		"minimum", "maxLength", "minItems", "anyOf", "allOf", "not", "if", "then", "patternProperties", "dependentRequired", "dependentSchemas", "contains", "minContains", "$ref", "$ref", "title", "propertyNames")
	switch key {
	case "type":
		all[key] = g.types()
	case "properties", "dependentSchemas":
		all[key] = named()
	case "required":
		all[key] = []any{g.name()}
	case "enum":
		all[key] = slices.CompactFunc([]any{g.scalar(), g.scalar()}, func(a, b any) bool { return a == b })
	case "const":
		all[key] = g.value(1)
	case "prefixItems", "anyOf", "allOf":
		all[key] = []any{inner(), inner()}[:1+g.IntN(2)]
	case "minimum", "maxLength", "minItems", "minContains":
		all[key] = g.IntN(3)
	case "patternProperties":
		all[key] = map[string]any{oneOf(g, "^a", "^t", "d$"): inner()}
	case "dependentRequired":
		all[key] = map[string]any{g.name(): []any{g.name()}}
	case "$ref":
		all[key] = oneOf(g, "#/$defs/one", "#/$defs/two", "#/$defs/c%20d", "#/properties/a", "#")
	case "title":
		all[key] = oneOf(g, "one", "two")
	default:
		all[key] = inner()
	}
}

func (g drawn) types() any {
	all := []any{"integer", "number", "string", "object", "array", "null", "boolean"}
	if g.IntN(3) > 0 {
		return oneOf(g, all...)
	}
	g.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:2]
}

func (g drawn) document() map[string]any {
	doc := map[string]any{"$defs": map[string]any{"one": g.schemaOf(1), "two": g.schemaOf(1), "c d": g.schemaOf(1)}}
	for range 1 + g.IntN(4) {
		g.keyword(doc, 2)
	}
	return doc
}

// changed returns a document of which a schema was changed, wherever it stands.
func (g drawn) changed(doc map[string]any) map[string]any {
	var after map[string]any
	text, _ := json.Marshal(doc)
	_ = json.Unmarshal(text, &after)
	var all []map[string]any
	var find func(v any)
	find = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			all = append(all, v)
			for _, name := range slices.Sorted(maps.Keys(v)) {
				find(v[name])
			}
		case []any:
			for _, one := range v {
				find(one)
			}
		}
	}
	find(after)
	for range 1 + g.IntN(2) {
		in := oneOf(g, all...)
		switch names := slices.Sorted(maps.Keys(in)); {
		case len(names) > 0 && g.IntN(2) == 0:
			delete(in, oneOf(g, names...))
		default:
			g.keyword(in, 1)
		}
	}
	return after
}

// compiledBy compiles a schema with the library; nil: it cannot be.
func compiledBy(schema []byte) *library.Schema {
	doc, err := library.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil
	}
	c := library.NewCompiler()
	if c.AddResource("urn:test", doc) != nil {
		return nil
	}
	s, err := c.Compile("urn:test")
	if err != nil {
		return nil
	}
	return s
}

func fits(t *testing.T, s *library.Schema, data []byte) bool {
	t.Helper()
	v, err := library.UnmarshalJSON(bytes.NewReader(data))
	require.NoError(t, err)
	return s.Validate(v) == nil
}

func typeOf(schema []byte) []catalogue.Type {
	return []catalogue.Type{{Name: "a.b", Object: "a", Kind: catalogue.State, Versions: []catalogue.Version{{Since: "2026-11-25", Schema: schema}}}}
}

// Whatever fits a schema fits the one before, unless Compare says that the change breaks
// somebody.
func TestCompareIsSound(t *testing.T) {
	breaking, harmless := 0, 0
	for seed := range uint64(600) {
		g := drawn{rand.New(rand.NewPCG(seed, 1))}
		doc := g.document()
		before, err := json.Marshal(doc)
		require.NoError(t, err)
		after, err := json.Marshal(g.changed(doc))
		require.NoError(t, err)
		was, is := compiledBy(before), compiledBy(after)
		if was == nil || is == nil {
			continue
		}
		changes := catalogue.Compare(typeOf(before), typeOf(after))
		if slices.ContainsFunc(changes, func(c catalogue.Change) bool { return c.Breaks }) {
			breaking++
			continue
		}
		harmless++
		for range 40 {
			data, err := json.Marshal(g.value(3))
			require.NoError(t, err)
			if fits(t, is, data) {
				require.True(t, fits(t, was, data), "seed %d: %s fits no more\nbefore %s\nafter  %s\n%v", seed, data, before, after, changes)
			}
		}
	}
	t.Logf("%d of %d changes break nobody", harmless, harmless+breaking)
	require.Greater(t, harmless, 100)
	require.Greater(t, breaking, 100)
}

// The schema of a body says of the data what the schema of the data does.
func TestBodySchemaMeansTheSame(t *testing.T) {
	good, bad := 0, 0
	for seed := range uint64(120) {
		g := drawn{rand.New(rand.NewPCG(seed, 2))}
		doc := g.document()
		switch g.IntN(3) {
		case 0:
			doc["$id"] = "https://example.com/a.json"
		case 1:
			doc["$defs"].(map[string]any)["one"] = map[string]any{"$id": "https://example.com/b.json", "$ref": "#/$defs/two", "$defs": map[string]any{"two": g.schemaOf(1)}}
		}
		schema, err := json.Marshal(doc)
		require.NoError(t, err)
		one := typeOf(schema)[0]
		body := one.BodySchema(&one.Versions[0])
		ofData, ofBody := compiledBy(schema), compiledBy(body)
		require.Equal(t, ofData == nil, ofBody == nil, "seed %d: %s\n%s", seed, schema, body)
		if ofData == nil {
			continue
		}
		for range 20 {
			data, err := json.Marshal(g.value(2))
			require.NoError(t, err)
			want := fits(t, ofData, data)
			posted := one.BodyExample(&one.Versions[0], &catalogue.Example{ObjectID: "1", Data: data})
			require.Equal(t, want, fits(t, ofBody, posted), "seed %d: %s\n%s\n%s", seed, schema, body, posted)
			if want {
				good++
			} else {
				bad++
			}
		}
	}
	require.Greater(t, good, 100)
	require.Greater(t, bad, 100)
}
