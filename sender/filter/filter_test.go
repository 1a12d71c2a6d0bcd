package filter_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surehook/surehook/sender/filter"
)

func parsed(t testing.TB, text string) *filter.Filter {
	t.Helper()
	f, err := filter.Parse([]byte(text))
	require.NoError(t, err)
	return f
}

const body = `{"id":"evt_1","type":"invoice.paid","object":{"type":"invoice","id":"in_7"},"version":3,"data":{
	"status":"paid", "amount":120.50, "big":9007199254740993, "tiny":-1e-400, "huge":1e99999999999999999999, "zero":-0.0, "null":null, "yes":true, "no":false, "empty":[],
	"customer":{"country":"DE","name":"J\u00f6rg \ud83d\ude00","a.b":1,"c\\d":2},
	"tags":["a",["b",["c"]],7], "items":[{"sku":"X","n":1},{"sku":"Y","n":20},{"other":1},5], "twice":1, "twice":2,
	"paid\u005fat":"2026-07-01T10:00:00Z", "status ":"other", "quoted":"a\"b\\", "q\"n":3}}`

func TestMatch(t *testing.T) {
	for name, all := range map[string]struct{ hold, fail []string }{
		"equal": {
			hold: []string{`{"data.status":"paid"}`, `{"data.status":{"eq":"paid"}}`, `{"data.yes":true}`, `{"data.no":false}`, `{"data.null":null}`, `{"object.type":"invoice","object.id":"in_7"}`},
			fail: []string{`{"data.status":"Paid"}`, `{"data.status":"pai"}`, `{"data.status":"paid "}`, `{"data.Status":"paid"}`, `{"data.yes":"true"}`, `{"data.yes":false}`, `{"data.null":false}`, `{"data.customer":"DE"}`, `{"data.amount":"120.50"}`},
		},
		"numbers": {
			hold: []string{`{"data.amount":120.5}`, `{"data.amount":1205e-1}`, `{"data.amount":{"gte":120.50,"lt":120.51}}`, `{"data.big":9007199254740993}`, `{"data.big":{"gt":9007199254740992,"lt":9007199254740994}}`,
				`{"data.tiny":{"lt":0,"gt":-1e-399}}`, `{"data.huge":{"gt":1e9999}}`, `{"data.zero":0}`, `{"data.zero":{"lte":0,"gte":0}}`, `{"data.zero":{"gt":-1}}`, `{"data.amount":{"in":[1,120.5,3]}}`, `{"data.amount":{"in":[400,120.5,7,2,300]}}`},
			fail: []string{`{"data.amount":120.51}`, `{"data.amount":1205}`, `{"data.amount":-120.5}`, `{"data.amount":{"gt":120.5}}`, `{"data.big":9007199254740992}`, `{"data.tiny":0}`, `{"data.huge":1e9999}`, `{"data.status":{"gt":0}}`, `{"data.amount":{"in":[1,3]}}`, `{"data.null":0}`},
		},
		"strings": {
			hold: []string{`{"data.customer.name":"Jörg 😀"}`, `{"data.customer.name":"J\u00f6rg \ud83d\ude00"}`, `{"data.customer.name":{"prefix":"Jö"}}`, `{"data.status":{"prefix":""}}`, `{"data.status":{"gt":"pai","lt":"paie"}}`,
				`{"data.paid_at":{"gte":"2026-07-01T00:00:00Z"}}`, `{"data.status":{"in":["open","paid"]}}`, `{"data.status":{"prefix":"paid"}}`, `{"data.quoted":"a\"b\\"}`},
			fail: []string{`{"data.customer.name":{"prefix":"Jo"}}`, `{"data.amount":{"prefix":"1"}}`, `{"data.status":{"lt":"paid"}}`, `{"data.status":{"gt":"paid"}}`, `{"data.status":{"in":["open"]}}`},
		},
		"names": {
			hold: []string{`{"data.customer.a\\.b":1}`, `{"data.customer.c\\\\d":2}`, `{"data.status ":"other"}`, `{"data.paid_at":{"exists":true}}`, `{"data.q\"n":3}`},
			fail: []string{`{"data.customer.a.b":1}`, `{"data.status.x":"paid"}`, `{"data.":1}`}[:2],
		},
		"missing": {
			hold: []string{`{"data.other":{"exists":false}}`, `{"data.null":{"exists":true}}`, `{"data":{"exists":true}}`, `{"data.customer":{"exists":true}}`, `{"data.empty":{"exists":true}}`, `{"not":{"data.other":1}}`, `{"data.empty.x":{"exists":false}}`, `{"not":{"data.empty":null}}`},
			fail: []string{`{"data.other":null}`, `{"data.other":{"exists":true}}`, `{"data.null":{"exists":false}}`, `{"data.other":{"lt":5}}`, `{"data.other":{"prefix":""}}`},
		},
		"arrays": {
			hold: []string{`{"data.tags":"a"}`, `{"data.tags":"c"}`, `{"data.tags":7}`, `{"data.items.sku":"Y"}`, `{"data.items.n":{"gt":5}}`, `{"data.items.n":{"gt":5,"lt":21}}`, `{"data.items":5}`, `{"data.twice":1,"data.items.sku":{"in":["Y"]}}`, `{"data.twice":2}`},
			fail: []string{`{"data.tags":"d"}`, `{"data.items.sku":"Z"}`, `{"data.items.n":{"gt":1,"lt":20}}`, `{"not":{"data.tags":"b"}}`},
		},
		"joined": {
			hold: []string{`{"or":[{"data.status":"open"},{"data.amount":{"gt":100}}]}`, `{"and":[{"data.tags":"a"},{"data.tags":"b"}]}`, `{"not":{"or":[{"data.status":"open"},{"data.yes":false}]}}`, `{"not":{"not":{"data.yes":true}}}`, `{"data.yes":true,"not":{"data.no":true},"or":[{"data.x":1},{"data.no":false}],"and":[{"data.null":null}]}`},
			fail: []string{`{"data.status":"paid","data.amount":1}`, `{"or":[{"data.status":"open"},{"data.amount":1}]}`, `{"not":{"data.status":"paid"}}`, `{"and":[{"data.tags":"a"},{"data.tags":"z"}]}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, text := range all.hold {
				f := parsed(t, text)
				require.True(t, f.Match([]byte(body)), text)
				require.True(t, naive(decoded([]byte(text)), decoded([]byte(body))), text)
				require.Empty(t, f.Explain([]byte(body)), text)
			}
			for _, text := range all.fail {
				f := parsed(t, text)
				require.False(t, f.Match([]byte(body)), text)
				require.False(t, naive(decoded([]byte(text)), decoded([]byte(body))), text)
				require.NotEmpty(t, f.Explain([]byte(body)), text)
			}
		})
	}
}

// A redacted event has no content, so it matches no filter, not even one with "not".
func TestMatchNothing(t *testing.T) {
	require.False(t, parsed(t, `{"not":{"data.x":1}}`).Match(nil))
	require.True(t, (*filter.Filter)(nil).Match(nil))
}

func TestParseErrors(t *testing.T) {
	deep := strings.Repeat(`{"not":`, filter.MaxDepth+1) + `{"data.x":1}` + strings.Repeat("}", filter.MaxDepth+1)
	many := make([]string, filter.MaxTerms+1)
	for i := range many {
		many[i] = fmt.Sprintf(`"data.x%d":1`, i)
	}
	operators := make([]string, filter.MaxTerms/2+1)
	for i := range operators {
		operators[i] = fmt.Sprintf(`"data.x%d":{"gt":1,"lt":2}`, i)
	}
	for text, want := range map[string]string{
		``:                                     "it is not JSON: unexpected end of JSON input",
		`{"data.x":}`:                          "it is not JSON: invalid character '}' looking for beginning of value",
		"{\"data.x\":\"\xff\"}":                "it is not valid UTF-8",
		`null`:                                 `it must be an object, such as {"data.status": "paid"}`,
		`[{"data.x":1}]`:                       `it must be an object, such as {"data.status": "paid"}`,
		`{}`:                                   "it asks for nothing: name a path, or leave it out",
		`{"status":"paid"}`:                    `status: it is neither "and", "or", "not" nor a path: a path begins with "data.", such as "data.status", or is "object.type" or "object.id"`,
		`{"$.x":1}`:                            `["$.x"]: it is neither "and", "or", "not" nor a path: a path begins with "data.", such as "data.x", or is "object.type" or "object.id"`,
		`{"object.version":1}`:                 `["object.version"]: it is neither "and", "or", "not" nor a path: a path begins with "data.", such as "data.object.version", or is "object.type" or "object.id"`,
		`{"data.x\\y":1}`:                      `["data.x\\y"]: a backslash stands before a dot or a backslash that belongs to a name: write \\ for a backslash itself`,
		`{"data.x.":1}`:                        `["data.x."]: the path ends with a dot: a name follows each dot`,
		`{"data.x":1,"data.x":2}`:              `["data.x"]: it is there twice: to ask for both, write {"and": [{…}, {…}]}`,
		`{"data.x":{}}`:                        `["data.x"]: there is no operator: write one of "eq", "in", "prefix", "lt", "lte", "gt", "gte", "exists", or {"exists": true} if any value is right`,
		`{"data.x":[1,2]}`:                     `["data.x"]: a list of values is written {"in": […]}`,
		`{"data.x":{"eq":{"y":1}}}`:            `["data.x"].eq: a value is a string, a number, true, false or null: name a path to look into an object or an array`,
		`{"data.x":{"$gt":1}}`:                 `["data.x"]["$gt"]: it is no operator: write "gt"`,
		`{"data.x":{"ne":1}}`:                  `["data.x"].ne: it is no operator: write {"not": {"data.x": …}} around it`,
		`{"data.\u007f":{"ne":1}}`:             "write {\"not\": {\"data.\x7f\": …}} around it",
		`{"x":{"ne":1}}`:                       `x.ne: it is no operator: write {"not": {…: …}} around it`,
		`{"data.x":{"regex":"a+"}}`:            `["data.x"].regex: it is no operator: the operators are "eq", "in", "prefix", "lt", "lte", "gt", "gte", "exists"`,
		`{"data.x":{"in":[]}}`:                 `["data.x"].in: the list is empty, so nothing would match: give one value or more`,
		`{"data.x":{"in":"a"}}`:                `["data.x"].in: it must be a list of values, such as ["paid", "settled"]`,
		`{"data.x":{"in":[1,[2]]}}`:            `["data.x"].in[1]: a value is a string, a number, true, false or null: name a path to look into an object or an array`,
		`{"data.x":{"prefix":1}}`:              `["data.x"].prefix: it must be a string: what begins with it matches`,
		`{"data.x":{"lt":null}}`:               `["data.x"].lt: it must be a number or a string: nothing else is less or greater`,
		`{"data.x":{"lt":1e10000}}`:            `["data.x"].lt: the exponent of the number is beyond ±9999`,
		`{"data.x":{"exists":1}}`:              `["data.x"].exists: it must be true or false`,
		`{"data.x":{"exists":true,"gt":1}}`:    `["data.x"]: "exists" stands alone: other operators hold only of what is there`,
		`{"or":{"data.x":1}}`:                  `or: it must be a list of expressions, such as [{"data.status": "paid"}, {"data.status": "settled"}]`,
		`{"or":[]}`:                            `or: the list is empty: give one expression or more`,
		`{"or":[{"data.x":1},{"x":{"gt":1}}]}`: `or[1].x: it is neither "and", "or", "not" nor a path: a path begins with "data.", such as "data.x", or is "object.type" or "object.id"`,
		`{"data` + strings.Repeat(".x", filter.MaxNames) + `":1}`:   "the path has 17 names: at most 16 are allowed",
		`{"data.x":"` + strings.Repeat("x", filter.MaxBytes) + `"}`: "it has 8205 bytes: at most 8192 are allowed",
		`{` + strings.Join(many, ",") + `}`:                         "it has 65 operators: at most 64 are allowed",
		`{` + strings.Join(operators, ",") + `}`:                    "it has 66 operators: at most 64 are allowed",
		deep:                                                        `not.not.not.not.not.not.not.not.not: "and", "or" and "not" stand within each other more than 8 times: write it flatter`,
	} {
		_, err := filter.Parse([]byte(text))
		require.Error(t, err, text)
		require.Contains(t, err.Error(), want, text)
		var one *filter.Error
		require.ErrorAs(t, err, &one, text)
	}

	_, err := filter.Parse([]byte(`{"x":1,"data.y":{"in":[]}}`))
	require.True(t, errors.As(err, new(*filter.Error)))
	// All that is wrong is said at once, and nothing else: reading goes on behind it.
	nested := strings.Repeat(`{"not":`, filter.MaxDepth+1) + `{"data.x":{"or":[{}]}}` + strings.Repeat("}", filter.MaxDepth+1)
	for _, wrong := range []string{
		`"data.x":[{"y":[1]},2]`, `"data.x":{"eq":{"y":[1]}}`, `"data.x":{"lt":[1]}`, `"data.x":{"in":{"y":[1]}}`, `"data.x":{"in":[1,[2,{"y":3}],4]}`, `"data.x":{"prefix":[1]}`,
		`"data.x":{"exists":[1]}`, `"data.x":{"exists":{"y":1}}`, `"data.x":{"ne":[1]}`, `"or":{"data.x":{"y":1}}`, `"or":[[{"y":1}]]`, `"not":[{"y":1}]`, `"not":` + nested[len(`{"not":`):len(nested)-1],
	} {
		_, err := filter.Parse([]byte(`{` + wrong + `,"data.y":{"in":[]}}`))
		require.Error(t, err, wrong)
		require.Len(t, strings.Split(err.Error(), "\n"), 2, "%s: %v", wrong, err)
		require.ErrorContains(t, err, `["data.y"].in: the list is empty`, wrong)
	}
}

// The text of String means the same, and is as short as it can be.
func TestString(t *testing.T) {
	for text, want := range map[string]string{
		` { "data.x" : { "eq" : "a<b\u0041" } } `:                  `{"data.x":"a<bA"}`,
		`{"and":[{"data.x":1},{"data.y":{"gte":1.0,"lt":2e1}}]}`:   `{"data.x":1,"data.y":{"gte":1.0,"lt":2e1}}`,
		`{"and":[{"data.x":1},{"data.x":2}]}`:                      `{"and":[{"data.x":1},{"data.x":2}]}`,
		`{"data.x":1,"and":[{"data.x":{"exists":false}}]}`:         `{"and":[{"data.x":1},{"data.x":{"exists":false}}]}`,
		`{"or":[{"or":[{"data.x":1},{"data.y":1}]},{"data.z":1}]}`: `{"or":[{"data.x":1},{"data.y":1},{"data.z":1}]}`,
		`{"not":{"and":[{"data.a\\.b":{"in":[null,true,"x"]}}]}}`:  `{"not":{"data.a\\.b":{"in":[null,true,"x"]}}}`,
		`{"or":[{"data.x":{"exists":true}}]}`:                      `{"data.x":{"exists":true}}`,
	} {
		f := parsed(t, text)
		require.Equal(t, want, f.String())
		encoded, err := json.Marshal(map[string]any{"filter": f})
		require.NoError(t, err)
		require.JSONEq(t, `{"filter":`+want+`}`, string(encoded))
		require.True(t, f.Equal(parsed(t, want)))
	}
	require.Equal(t, "", (*filter.Filter)(nil).String())
}

// A stored filter that cannot be read delivers nothing, and is not lost.
func TestRead(t *testing.T) {
	require.Nil(t, filter.Read(""))
	f := filter.Read(`{"data.x":{"eq":1}}`)
	require.NoError(t, f.Unreadable())
	require.True(t, f.Match([]byte(`{"data":{"x":1}}`)))
	for text, encoded := range map[string]string{`{"data.x":{"later":1}}`: `{"data.x":{"later":1}}`, `{`: `"{"`} {
		f := filter.Read(text)
		require.ErrorContains(t, f.Unreadable(), "the stored expression cannot be read by this release")
		require.False(t, f.Match([]byte(`{"data":{"x":1}}`)))
		require.Equal(t, text, f.String())
		require.NotEmpty(t, f.Explain([]byte(body)))
		b, err := json.Marshal(f)
		require.NoError(t, err)
		require.Equal(t, encoded, string(b))
	}
}

func TestExplain(t *testing.T) {
	for text, want := range map[string]string{
		`{"data.yes":true,"data.status":"open"}`:                        `[data.status = "open" does not hold: it is "paid"]`,
		`{"data.other":{"gte":1,"lt":2}}`:                               `[data.other >= 1 and < 2 does not hold: it is missing]`,
		`{"data.tags":{"in":["x","y"]}}`:                                `[data.tags in ["x","y"] does not hold: it is "a", "b", "c" and 1 more]`,
		`{"data.items":{"prefix":"z"}}`:                                 `[data.items begins with "z" does not hold: it is an object, an object, an object and 1 more]`,
		`{"data.empty":1}`:                                              `[data.empty = 1 does not hold: it is an empty list]`,
		`{"data.customer":{"exists":false}}`:                            `[data.customer is missing does not hold: it is an object]`,
		`{"data.x":{"exists":true}}`:                                    `[data.x exists does not hold: it is missing]`,
		`{"not":{"data.status":"paid"}}`:                                `[not data.status = "paid" does not hold: it is "paid"]`,
		`{"not":{"or":[{"data.status":"paid"},{"data.x":1}]}}`:          `[not {"or":[{"data.status":"paid"},{"data.x":1}]} does not hold: it holds]`,
		`{"or":[{"data.status":"open"},{"data.yes":true,"data.no":1}]}`: `[data.status = "open" does not hold: it is "paid" data.no = 1 does not hold: it is false]`,
	} {
		require.Equal(t, want, fmt.Sprint(parsed(t, text).Explain([]byte(body))), text)
	}

	// A value of any length is cut, at a letter.
	long := `{"data":{"x":"` + strings.Repeat("ö", 1000) + `"}}`
	r := parsed(t, `{"data.x":"`+strings.Repeat("a", 1000)+`"}`).Explain([]byte(long))
	require.Len(t, r, 1)
	require.Less(t, len(r[0].Clause), 200)
	require.Equal(t, `it is "`+strings.Repeat("ö", 32)+`…"`, r[0].Found)
	require.Equal(t, "the body was redacted", parsed(t, `{"data.x":1}`).Explain(nil)[0].Found)
}

// Whatever is parsed is written so that it means the same, and matches what the words of the
// package comment say.
func FuzzMatch(f *testing.F) {
	for _, text := range []string{
		`{"data.status":"paid","data.amount":{"gte":100,"lt":1e3}}`, `{"or":[{"data.items.n":{"in":[1,"x",null,true]}},{"not":{"data.x":{"exists":true}}}]}`,
		`{"data.customer.name":{"prefix":"J\u00f6"}}`, `{"data.a\\.b":{"exists":false},"and":[{"object.id":{"gt":"a"}},{"object.type":"t"}]}`, `{"data.tags":"a","not":{"data.tags":7}}`,
		`{"data.zero":0,"data.big":9007199254740993,"data.twice":2}`,
	} {
		f.Add([]byte(text), []byte(body))
	}
	f.Add([]byte(`{"data.x":1}`), []byte(`[[{"data":[{"x":[[1.0]]}]}]]`))
	f.Add([]byte(`{"data.a.x":1,"data.b":3}`), []byte(`{"data":{"a":{"x":1,"b":3},"b":2}}`)) // what is decided is passed over
	for n := range 3 {                                                                       // where a long string begins
		long := strings.Repeat("a", 30+n)
		f.Add([]byte(`{"data.x":"`+long+`\\\"","data.y":1}`), []byte(`{"data":{"n":"`+long+`\\","o":{"`+long+`\\\"}":0},"x":"`+long+`\\\"","y":1}}`))
	}
	f.Add([]byte(`{"data.x":"\ud800"}`), []byte(`{"data":{"x":"\ud800\\\""}}`))
	for _, body := range []string{`{"data":{"x":1e}}`, `{"data":{"y":{`, `{"data":{"x`, `{"data":{x}}`, `{"data":{"x":-`} { // no JSON
		f.Add([]byte(`{"data.x":1}`), []byte(body))
	}
	// Nor is this. Match has seen enough in the first half, and Explain reads the second, too.
	f.Add([]byte(`{"data.a.x":1,"data.b":3}`), []byte(`{"data":{"a":{"x":1,"b":},"b":3{"x":1,"b":},"b":3},"b":2}}`))
	// Nor are bytes that are no UTF-8, though encoding/json takes them. No such body is ever published.
	f.Add([]byte(`{"data.x":{"gt":"\u00f6"}}`), []byte("{\"data\":{\"x\":\"\x80\"}}"))
	f.Add([]byte(`{"data.\u0000":1,"data.\u0001":{"exists":true}}`), []byte(`{"data":{"\u0000":1,"\u0001":2}}`))
	f.Fuzz(func(t *testing.T, text, body []byte) {
		if _, err := filter.Parse(text); err == nil {
			requireMeaning(t, text, body)
		}
	})
}

// So does whatever is drawn from names and values that are few, so that much of it matches.
func TestPropertyMatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := []byte(`{"data":` + drawnValue(3).Draw(t, "data") + `,"object":{"type":"a","id":"ab"}}`)
		for range 8 {
			requireMeaning(t, []byte(drawnExpression(2).Draw(t, "expression")), body)
		}
	})
}

type testingT interface {
	require.TestingT
	Helper()
}

// requireMeaning asserts that a filter does with a body what the naive evaluator does, and
// that its text says the same.
func requireMeaning(t testingT, text, body []byte) {
	t.Helper()
	flt, err := filter.Parse(text)
	require.NoError(t, err)
	again, err := filter.Parse([]byte(flt.String()))
	require.NoError(t, err)
	require.Equal(t, flt.String(), again.String())
	got, reasons := flt.Match(body), flt.Explain(body)
	require.Equal(t, got, again.Match(body))
	if json.Valid(body) && utf8.Valid(body) {
		require.Equal(t, got, len(reasons) == 0, "%s on %s", text, body)
		require.Equal(t, naive(decoded(text), decoded(body)), got, "%s on %s", text, body)
		require.Equal(t, naive(decoded([]byte(flt.String())), decoded(body)), got)
	}
}
