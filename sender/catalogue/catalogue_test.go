package catalogue_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/catalogue"
)

// paid is a type with three versions.
func paid() catalogue.Type {
	down := func(from, to string) func(json.RawMessage) (json.RawMessage, error) {
		return catalogue.Converter(func(v map[string]json.RawMessage) (map[string]json.RawMessage, error) {
			if v[from] == nil {
				return nil, errors.New("there is no " + from)
			}
			v[to] = v[from]
			delete(v, from)
			return v, nil
		})
	}
	version := func(since, field string, down func(json.RawMessage) (json.RawMessage, error)) catalogue.Version {
		return catalogue.Version{
			Since: since, Down: down,
			Schema:   json.RawMessage(`{"type":"object","required":["` + field + `"],"properties":{"` + field + `":{"$ref":"#/$defs/money"}},"$defs":{"money":{"type":"integer"}}}`),
			Examples: []catalogue.Example{{Name: "large", ObjectID: "in_1", Data: json.RawMessage(`{"` + field + `":9007199254740993}`)}},
		}
	}
	return catalogue.Type{
		Name: "invoice.paid", Group: "Invoices", Object: "invoice", Kind: catalogue.State, Description: "It was paid <in full> & in time.",
		Versions: []catalogue.Version{version("", "sum", nil), version("2025-03-01", "amount", down("amount", "sum")), version("2026-11-25", "total", down("total", "amount"))},
	}
}

func thin() catalogue.Type {
	return catalogue.Type{Name: "user.updated", Object: "user", Kind: catalogue.Thin, Deprecated: "Use user.changed.",
		Versions: []catalogue.Version{{Examples: []catalogue.Example{{ObjectID: "user_1"}}}}}
}

func made(t *testing.T, types ...catalogue.Type) *catalogue.Catalogue {
	t.Helper()
	c, err := catalogue.New(types)
	require.NoError(t, err)
	return c
}

func TestNewRefuses(t *testing.T) {
	change := func(f func(*catalogue.Type)) []catalogue.Type {
		one := paid()
		f(&one)
		return []catalogue.Type{one, thin()}
	}
	for want, types := range map[string][]catalogue.Type{
		"give one or more":            nil,
		"it is there twice":           {paid(), paid()},
		"event type":                  change(func(t *catalogue.Type) { t.Name = "invoice.*" }),
		"object type":                 change(func(t *catalogue.Type) { t.Object = "" }),
		"must be State, Fact or Thin": change(func(t *catalogue.Type) { t.Kind = "" }),
		"valid UTF-8":                 change(func(t *catalogue.Type) { t.Description = "\xff" }),
		"has no Versions":             change(func(t *catalogue.Type) { t.Versions = nil }),
		"it is Thin and has 3":        change(func(t *catalogue.Type) { t.Kind = catalogue.Thin }),
		"has no data: leave out Data": change(func(t *catalogue.Type) { t.Kind = catalogue.Thin }),
		"and so no Schema":            change(func(t *catalogue.Type) { t.Kind = catalogue.Thin }),
		"it has no Since":             change(func(t *catalogue.Type) { t.Versions[1].Since = "" }),
		"must be a date":              change(func(t *catalogue.Type) { t.Versions[2].Since = "2026-13-01" }),
		"must be after":               change(func(t *catalogue.Type) { t.Versions[2].Since = "2025-03-01" }),
		"has a Down":                  change(func(t *catalogue.Type) { t.Versions[0].Down = t.Versions[1].Down }),
		"has no Down":                 change(func(t *catalogue.Type) { t.Versions[1].Down = nil }),
		"must be a JSON Schema":       change(func(t *catalogue.Type) { t.Versions[1].Schema = json.RawMessage("[]") }),
		"has no Examples":             change(func(t *catalogue.Type) { t.Versions[1].Examples = nil }),
		"object id":                   change(func(t *catalogue.Type) { t.Versions[1].Examples[0].ObjectID = "" }),
		"has no Data":                 change(func(t *catalogue.Type) { t.Versions[1].Examples[0].Data = nil }),
		"Data is no JSON":             change(func(t *catalogue.Type) { t.Versions[1].Examples[0].Data = json.RawMessage("{") }),
		"has the same Name": change(func(t *catalogue.Type) {
			t.Versions[1].Examples = append(t.Versions[1].Examples, t.Versions[1].Examples[0])
		}),
		`version "2026-11-25": example "large", made into version "2025-03-01": it is not that version's example`: change(func(t *catalogue.Type) {
			t.Versions[1].Examples[0].Data = json.RawMessage(`{"amount":9007199254740992}`)
		}),
		`Down of version "2026-11-25": there is no total`: change(func(t *catalogue.Type) {
			t.Versions[2].Examples[0].Data = json.RawMessage(`{}`)
		}),
		`Down of version "2026-11-25": it panicked`: change(func(t *catalogue.Type) {
			t.Versions[2].Down = func(json.RawMessage) (json.RawMessage, error) { panic("x") }
		}),
		`Down of version "2026-11-25": what it returned is no JSON`: change(func(t *catalogue.Type) {
			t.Versions[2].Down = func(json.RawMessage) (json.RawMessage, error) { return nil, nil }
		}),
		`what it returned is no JSON in UTF-8`: change(func(t *catalogue.Type) {
			t.Versions[2].Down = func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage("\"\xff\""), nil }
		}),
		"Changes must be valid UTF-8": change(func(t *catalogue.Type) { t.Versions[2].Changes = "\xff" }),
		"true or false, in UTF-8":     change(func(t *catalogue.Type) { t.Versions[2].Schema = json.RawMessage("{\"title\":\"\xff\"}") }),
		"its Name must be valid":      change(func(t *catalogue.Type) { t.Versions[2].Examples[0].Name = "\xff" }),
	} {
		_, err := catalogue.New(types)
		require.ErrorContains(t, err, want)
	}
	_, err := catalogue.New([]catalogue.Type{{Name: "a b"}, {Name: "c d"}})
	require.ErrorContains(t, err, "type 0")
	require.ErrorContains(t, err, "type 1", "all problems at once")
}

func TestLookup(t *testing.T) {
	c := made(t, paid(), thin())
	got, ok := c.Lookup("invoice.paid")
	require.True(t, ok)
	got.Versions[0].Examples[0].ObjectID, got.Versions[0].Since = "changed", "changed"
	again, _ := c.Lookup("invoice.paid")
	require.Equal(t, "in_1", again.Versions[0].Examples[0].ObjectID, "it is a copy")
	require.Equal(t, "2026-11-25", again.Newest().Since)
	_, ok = c.Lookup("invoice")
	require.False(t, ok)
	require.Equal(t, []string{"2026-11-25", "2025-03-01"}, c.Dates())
	require.Equal(t, "2026-11-25", c.Newest())
	require.Equal(t, "2026-11-25", c.PayloadVersion("invoice.paid"))
	require.Empty(t, c.PayloadVersion("user.updated"))
	require.Empty(t, c.PayloadVersion("unknown"))
	for version, known := range map[string]bool{"": true, "2025-03-01": true, "2026-11-25": true, "2025-02-28": false, "2026-11-26": false} {
		require.Equal(t, known, c.CheckVersion("invoice.paid", version) == nil, "%q", version)
	}
	require.EqualError(t, c.CheckVersion("invoice.paid", "2026-11-26"), `sender/catalogue: type "invoice.paid" has no payload version "2026-11-26": leave it out for the newest, or give "2025-03-01" or "2026-11-25"`)
	require.NoError(t, c.CheckVersion("unknown", "2026-11-26"))
	for date, since := range map[string]string{"": "", "2025-02-28": "", "2025-03-01": "2025-03-01", "2026-11-24": "2025-03-01", "2026-11-25": "2026-11-25", "2030-01-01": "2026-11-25"} {
		require.Equal(t, since, again.At(date).Since, "%q", date)
	}
}

func TestFacts(t *testing.T) {
	fact := paid()
	fact.Name, fact.Kind = "invoice.voided", catalogue.Fact
	require.Equal(t, []string{"invoice.voided"}, made(t, append(catalogue.Own(), paid(), fact, thin())...).Facts())
}

func TestGroups(t *testing.T) {
	named := func(name, group string) catalogue.Type {
		one := thin()
		one.Name, one.Group = name, group
		return one
	}
	var got []string
	for _, g := range made(t, named("a", "A"), named("b", "B"), named("c", "A"), named("d", "")).Groups() {
		for _, one := range g.Types {
			got = append(got, g.Name+":"+one.Name)
		}
	}
	require.Equal(t, []string{"A:a", "A:c", "B:b", ":d"}, got)
}

func TestConvert(t *testing.T) {
	c := made(t, paid(), thin())
	newest := json.RawMessage(`{"total":9007199254740993,"note":"x"}`)
	for date, want := range map[string][2]string{
		"":           {"", `{"note":"x","sum":9007199254740993}`},
		"2025-03-01": {"2025-03-01", `{"amount":9007199254740993,"note":"x"}`},
		"2026-01-01": {"2025-03-01", `{"amount":9007199254740993,"note":"x"}`},
		"2026-11-25": {"2026-11-25", string(newest)},
		"2027-01-01": {"2026-11-25", string(newest)},
	} {
		version, data, err := c.Convert("invoice.paid", "2026-11-25", date, newest)
		require.NoError(t, err)
		require.Equal(t, want, [2]string{version, string(data)}, "%q", date)
	}
	version, data, err := c.Convert("invoice.paid", "2025-03-01", "2026-11-25", json.RawMessage(`{"amount":1}`))
	require.NoError(t, err)
	require.Equal(t, `2025-03-01 {"amount":1}`, version+" "+string(data), "nothing is made newer")
	version, data, err = c.Convert("unknown", "2026-11-25", "", newest)
	require.NoError(t, err)
	require.Equal(t, "2026-11-25 "+string(newest), version+" "+string(data))
	_, _, err = c.Convert("invoice.paid", "2026-12-01", "", newest)
	require.ErrorContains(t, err, `no version "2026-12-01"`, "another process has a newer catalogue")
	_, _, err = c.Convert("invoice.paid", "2026-11-25", "", json.RawMessage(`{"total":null}`))
	require.NoError(t, err)
	_, _, err = c.Convert("invoice.paid", "2026-11-25", "", json.RawMessage(`["secret"]`))
	require.ErrorContains(t, err, `Down of version "2026-11-25" has failed with a *json.UnmarshalTypeError`)
	require.NotContains(t, err.Error(), "secret")
}

// An error says how a converter has failed, as far as that quotes nothing of the data.
func TestConverterThatFails(t *testing.T) {
	for want, down := range map[string]func(json.RawMessage) (json.RawMessage, error){
		`Down of version "2026-11-25": it panicked: try it with the event's data`:                          func(data json.RawMessage) (json.RawMessage, error) { panic(string(data)) },
		`Down of version "2026-11-25": what it returned is no JSON in UTF-8: try it`:                       func(data json.RawMessage) (json.RawMessage, error) { return data[1:], nil },
		`Down of version "2026-11-25" has failed with a *errors.errorString: try it with the event's data`: func(data json.RawMessage) (json.RawMessage, error) { return nil, errors.New(string(data)) },
	} {
		one := paid()
		sound := one.Versions[2].Down
		one.Versions[2].Down = func(data json.RawMessage) (json.RawMessage, error) {
			if bytes.Contains(data, []byte("secret")) {
				return down(data)
			}
			return sound(data)
		}
		_, _, err := made(t, one).Convert("invoice.paid", "2026-11-25", "", json.RawMessage(`{"total":"secret"}`))
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "secret")
	}
}

// A converter that appends to its data changes nothing that others read.
func TestConverterHasACopy(t *testing.T) {
	example := json.RawMessage(`{"a":1}     `)
	c := made(t, catalogue.Type{Name: "a.b", Object: "a", Kind: catalogue.State, Versions: []catalogue.Version{
		{Examples: []catalogue.Example{{ObjectID: "1", Data: json.RawMessage(`{}`)}}},
		{
			Since: "2026-11-25", Examples: []catalogue.Example{{Name: "new", ObjectID: "1", Data: example}},
			Down: func(data json.RawMessage) (json.RawMessage, error) {
				return append(bytes.TrimSuffix(bytes.TrimSpace(data), []byte("}")), `,"b":2}`...), nil
			},
		},
	}})
	require.Equal(t, `{"a":1}     `, string(example))
	body := []byte(`{"data":{"a":1}} and what follows`)
	_, data, err := c.Convert("a.b", "2026-11-25", "", body[len(`{"data":`):len(`{"data":{"a":1}`)])
	require.NoError(t, err)
	require.Equal(t, `{"a":1,"b":2}`, string(data))
	require.Equal(t, `{"data":{"a":1}} and what follows`, string(body))
}

func TestState(t *testing.T) {
	state, err := json.Marshal(made(t, paid(), thin()))
	require.NoError(t, err)
	types, err := catalogue.Read(state)
	require.NoError(t, err)
	want := []catalogue.Type{paid(), thin()}
	for i := range want[0].Versions {
		want[0].Versions[i].Down = nil
	}
	require.Equal(t, want, types)
	for _, bad := range []string{"", "[]", "{}", `{"types":[{"name":"a"}]}`} {
		_, err := catalogue.Read([]byte(bad))
		require.ErrorContains(t, err, "no state of a catalogue", bad)
	}
}

func TestOpenAPI(t *testing.T) {
	c := made(t, paid(), thin())
	doc, err := c.OpenAPI(catalogue.Info{Title: "Shop"})
	require.NoError(t, err)
	again, err := c.OpenAPI(catalogue.Info{Title: "Shop"})
	require.NoError(t, err)
	require.Equal(t, string(doc), string(again))
	var got struct {
		OpenAPI  string
		Info     struct{ Title, Version string }
		Tags     []struct{ Name string }
		Webhooks map[string]struct {
			Post struct {
				Description string
				Deprecated  bool
				Tags        []string
				RequestBody struct {
					Content map[string]struct {
						Schema struct {
							Required   []string
							Properties map[string]json.RawMessage
						}
						Examples map[string]struct{ Value json.RawMessage }
					}
				}
			}
		}
		Components struct{ Schemas map[string]json.RawMessage }
	}
	require.NoError(t, json.Unmarshal(doc, &got))
	require.Equal(t, "3.1.0 Shop 2026-11-25", got.OpenAPI+" "+got.Info.Title+" "+got.Info.Version)
	require.Len(t, got.Tags, 1)
	body := got.Webhooks["invoice.paid"].Post.RequestBody.Content["application/json"]
	require.Contains(t, got.Webhooks["invoice.paid"].Post.Description, "<in full> &")
	require.Contains(t, string(doc), "<in full> &", "as it is written")
	require.JSONEq(t, `{"$ref":"#/components/schemas/invoice.paid"}`, string(body.Schema.Properties["data"]))
	require.JSONEq(t, `{"const":"2026-11-25","description":"The version of the data."}`, string(body.Schema.Properties["payload_version"]))
	require.Equal(t, []string{"id", "type", "occurred_at", "object", "version", "payload_version", "data"}, body.Schema.Required)
	require.JSONEq(t, `{"id":"evt_06h0gtek9tf30mc99r8jipb6c","type":"invoice.paid","occurred_at":"2026-01-02T15:04:05Z","object":{"type":"invoice","id":"in_1"},"version":1,"payload_version":"2026-11-25","data":{"total":9007199254740993}}`,
		string(body.Examples["large"].Value))
	require.JSONEq(t, `{"type":"object","required":["total"],"properties":{"total":{"$ref":"#/components/schemas/invoice.paid/$defs/money"}},"$defs":{"money":{"type":"integer"}}}`,
		string(got.Components.Schemas["invoice.paid"]), "references lead to where the schema is now")
	user := got.Webhooks["user.updated"].Post
	require.True(t, user.Deprecated)
	require.Contains(t, user.Description, "Use user.changed.")
	require.NotContains(t, user.RequestBody.Content["application/json"].Schema.Properties, "data", "it is thin")

	older, err := c.OpenAPI(catalogue.Info{At: "2025-03-01"})
	require.NoError(t, err)
	require.Contains(t, string(older), `"version": "2025-03-01"`)
	require.Contains(t, string(older), `"amount": 9007199254740993`)
	require.NotContains(t, string(older), `"total"`)
}

// A document has what was given, in its place: an example without a name beside one that has the
// name it would get, and schemas that have an $id.
func TestOpenAPIKeepsAll(t *testing.T) {
	one := paid()
	v := one.Newest()
	v.Examples = append(v.Examples, catalogue.Example{ObjectID: "in_2", Data: json.RawMessage(`{"total":1}`)}, catalogue.Example{Name: "example", ObjectID: "in_3", Data: json.RawMessage(`{"total":2}`)})
	v.Schema = json.RawMessage(`{"$id":"https://example.com/invoice.json","$defs":{"money":{"type":"integer"},
		"nested":{"$id":"nested.json","$ref":"#/$defs/own","$defs":{"own":{}}},"properties":{"$ref":"#/$defs/money"}},
		"properties":{"$ref":{"type":"string"},"total":{"$ref":"https://example.com/invoice.json#/$defs/money"},"lines":{"items":{"$ref":"#"}},"$id":{"const":{"$ref":"#/a"}}},
		"enum":["$ref","#/b",{"$ref":"#/c"}],"title":"$ref","#/d":1.50,"default":null,"allOf":[{"$dynamicRef":"#/$defs/money"},{"$ref":"#money"},{"$ref":"https://example.com/invoice.json2"}]}`)
	doc, err := made(t, one).OpenAPI(catalogue.Info{})
	require.NoError(t, err)
	var got struct {
		Webhooks map[string]struct {
			Post struct {
				RequestBody struct {
					Content map[string]struct {
						Examples map[string]struct {
							Value struct{ Object struct{ ID string } }
						}
					}
				}
			}
		}
		Components struct{ Schemas map[string]json.RawMessage }
	}
	require.NoError(t, json.Unmarshal(doc, &got))
	ids := map[string]string{}
	for name, e := range got.Webhooks["invoice.paid"].Post.RequestBody.Content["application/json"].Examples {
		ids[name] = e.Value.Object.ID
	}
	require.Equal(t, map[string]string{"large": "in_1", "another example": "in_2", "example": "in_3"}, ids)
	var compact bytes.Buffer
	require.NoError(t, json.Compact(&compact, got.Components.Schemas["invoice.paid"]))
	const at = "#/components/schemas/invoice.paid"
	require.Equal(t, `{"$defs":{"money":{"type":"integer"},`+
		`"nested":{"$ref":"`+at+`/$defs/nested/$defs/own","$defs":{"own":{}}},"properties":{"$ref":"`+at+`/$defs/money"}},`+
		`"properties":{"$ref":{"type":"string"},"total":{"$ref":"`+at+`/$defs/money"},"lines":{"items":{"$ref":"`+at+`"}},"$id":{"const":{"$ref":"#/a"}}},`+
		`"enum":["$ref","#/b",{"$ref":"#/c"}],"title":"$ref","#/d":1.50,"default":null,"allOf":[{"$dynamicRef":"`+at+`/$defs/money"},{"$ref":"#money"},{"$ref":"https://example.com/invoice.json2"}]}`, compact.String())

	for _, at := range []string{"yesterday", "2026-13-01", "2026-1-1"} {
		_, err := made(t, paid()).OpenAPI(catalogue.Info{At: at})
		require.ErrorContains(t, err, "it must be a date as 2026-11-25", at)
	}
}

// Types may have schemas in common, such as one that a tool has bundled into each of theirs. No
// name is there twice in the document, and each reference leads to the schema of its own type.
func TestOpenAPIOfSharedSchemas(t *testing.T) {
	types := []catalogue.Type{paid(), paid()}
	types[1].Name = "invoice.sent"
	for i, money := range []string{"integer", "number"} {
		types[i].Newest().Schema = json.RawMessage(`{"$id":"https://example.com/invoice.json","properties":{"total":{"$ref":"money.json"},"tax":{"$ref":"/money.json#/$defs/a~1b%20c"},
			"fee":{"$ref":"money.json#fee"},"net":{"$ref":"urn:x:net"},"far":{"$ref":"https://example.com/far.json#/a"}},"$defs":{
			"m/n":{"$id":"money.json","type":"` + money + `","$defs":{"a/b c":{"$anchor":"fee","$ref":"#"},"list":{"oneOf":[{},{"$id":"urn:x:net","not":{"$ref":"#/x"},"x":{"$ref":"https://example.com/invoice.json"}}]}}}}}`)
	}
	doc, err := made(t, types...).OpenAPI(catalogue.Info{})
	require.NoError(t, err)
	var got struct {
		Components struct{ Schemas map[string]json.RawMessage }
	}
	require.NoError(t, json.Unmarshal(doc, &got))
	for i, money := range []string{"integer", "number"} {
		var compact bytes.Buffer
		require.NoError(t, json.Compact(&compact, got.Components.Schemas[types[i].Name]))
		require.Equal(t, strings.ReplaceAll(`{"properties":{"total":{"$ref":"AT/$defs/m~1n"},"tax":{"$ref":"AT/$defs/m~1n/$defs/a~1b%20c"},`+
			`"fee":{"$ref":"AT/$defs/m~1n/$defs/a~1b%20c"},"net":{"$ref":"AT/$defs/m~1n/$defs/list/oneOf/1"},"far":{"$ref":"https://example.com/far.json#/a"}},"$defs":{`+
			`"m/n":{"type":"`+money+`","$defs":{"a/b c":{"$ref":"AT/$defs/m~1n"},"list":{"oneOf":[{},{"not":{"$ref":"AT/$defs/m~1n/$defs/list/oneOf/1/x"},"x":{"$ref":"AT"}}]}}}}}`,
			"AT", "#/components/schemas/"+types[i].Name), compact.String())
	}
}

func TestBody(t *testing.T) {
	one := paid()
	v := one.Newest()
	require.True(t, json.Valid(one.BodySchema(v)))
	var s struct {
		Properties struct{ Data json.RawMessage }
	}
	require.NoError(t, json.Unmarshal(one.BodySchema(v), &s))
	require.Equal(t, strings.ReplaceAll(string(v.Schema), "#/$defs/money", "#/properties/data/$defs/money"), string(s.Properties.Data), "references lead to where the schema is now")
	v.Schema = json.RawMessage(`{"items":{"$ref":"#"},"not":{"$ref":"#money"},"$defs":{"m":{"$anchor":"money"}}}`)
	require.NoError(t, json.Unmarshal(one.BodySchema(v), &s))
	require.Equal(t, `{"items":{"$ref":"#/properties/data"},"not":{"$ref":"#/properties/data/$defs/m"},"$defs":{"m":{}}}`, string(s.Properties.Data))
	require.True(t, bytes.HasSuffix(one.BodyExample(v, &v.Examples[0]), []byte(`,"payload_version":"2026-11-25","data":{"total":9007199254740993}}`)))
	one = thin()
	require.False(t, strings.Contains(string(one.BodyExample(one.Newest(), &one.Newest().Examples[0])), `"data"`))
}
