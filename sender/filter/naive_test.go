package filter_test

import (
	"bytes"
	"encoding/json"
	"math/big"
	"regexp"
	"strings"
)

// The naive evaluator does what the package comment says, word by word, on decoded JSON. It
// shares no code with the package.

// object keeps all members, so that a name that is there twice counts twice.
type object []member

type member struct {
	name  string
	value any
}

// decoded returns JSON as objects, []any, strings, json.Number, bool and nil.
func decoded(text []byte) any {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	return decodedNext(dec)
}

func decodedNext(dec *json.Decoder) any {
	t, err := dec.Token()
	if err != nil {
		panic(err)
	}
	switch t {
	case json.Delim('{'):
		o := object{}
		for dec.More() {
			name := decodedNext(dec).(string)
			o = append(o, member{name, decodedNext(dec)})
		}
		_, _ = dec.Token()
		return o
	case json.Delim('['):
		list := []any{}
		for dec.More() {
			list = append(list, decodedNext(dec))
		}
		_, _ = dec.Token()
		return list
	}
	return t
}

func naive(expression, body any) bool {
	for _, m := range expression.(object) {
		if !naiveMember(m, body) {
			return false
		}
	}
	return true
}

func naiveMember(m member, body any) bool {
	switch m.name {
	case "and":
		for _, e := range m.value.([]any) {
			if !naive(e, body) {
				return false
			}
		}
		return true
	case "or":
		for _, e := range m.value.([]any) {
			if naive(e, body) {
				return true
			}
		}
		return false
	case "not":
		return !naive(m.value, body)
	}
	found := []any{body}
	for _, name := range names(m.name) {
		var next []any
		for _, v := range elements(found) {
			if o, ok := v.(object); ok {
				for _, m := range o {
					if m.name == name {
						next = append(next, m.value)
					}
				}
			}
		}
		found = next
	}
	ops, ok := m.value.(object)
	if !ok {
		ops = object{{"eq", m.value}}
	}
	if ops[0].name == "exists" {
		return (len(found) > 0) == ops[0].value.(bool)
	}
	for _, v := range elements(found) {
		if meetsAll(ops, v) {
			return true
		}
	}
	return false
}

// names puts what no UTF-8 has in place of what is escaped.
func names(path string) (all []string) {
	path = strings.NewReplacer(`\\`, "\xfe", `\.`, "\xff").Replace(path)
	for _, name := range strings.Split(path, ".") {
		all = append(all, strings.NewReplacer("\xfe", `\`, "\xff", ".").Replace(name))
	}
	return all
}

func elements(values []any) (all []any) {
	for _, v := range values {
		if list, ok := v.([]any); ok {
			all = append(all, elements(list)...)
		} else {
			all = append(all, v)
		}
	}
	return all
}

func meetsAll(ops object, v any) bool {
	for _, op := range ops {
		if !meets(op, v) {
			return false
		}
	}
	return true
}

func meets(op member, v any) bool {
	switch op.name {
	case "in":
		for _, each := range op.value.([]any) {
			if meets(member{"eq", each}, v) {
				return true
			}
		}
		return false
	case "prefix":
		text, ok := v.(string)
		return ok && strings.HasPrefix(text, op.value.(string))
	}
	n := 0
	switch asked := op.value.(type) {
	case string:
		text, ok := v.(string)
		if !ok {
			return false
		}
		n = strings.Compare(text, asked)
	case json.Number:
		number, ok := v.(json.Number)
		if !ok {
			return false
		}
		n = rational(number).Cmp(rational(asked))
	default:
		return op.name == "eq" && v == asked
	}
	return map[string]bool{"eq": n == 0, "lt": n < 0, "lte": n <= 0, "gt": n > 0, "gte": n >= 0}[op.name]
}

// rational holds numbers whose exponents are not too long for it.
func rational(n json.Number) *big.Rat {
	r, ok := new(big.Rat).SetString(farther.ReplaceAllString(n.String(), "${1}10000"))
	if !ok {
		panic("no number: " + n)
	}
	return r
}

// farther finds exponents beyond all that expressions may have.
var farther = regexp.MustCompile(`([eE][+-]?)0*[1-9][0-9]{4,}`)
