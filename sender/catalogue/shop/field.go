package shop

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// field is a field of a state.
type field struct {
	name    string
	kind    kind
	about   string
	example string // a text; of money the cents, of a reference the id
}

type kind int

const (
	word  kind = iota
	count      // an integer
	money      // in euros in all examples
	moment
	reference
	added // a time that the first version does not have
)

// form is one of the two versions.
type form int

const (
	first form = iota
	second
)

// pair is a member of a JSON object.
type pair struct{ name, value string }

func members(pairs []pair) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, p := range pairs {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Quote(p.name) + ":" + p.value)
	}
	b.WriteByte('}')
	return b.String()
}

// schemas has the JSON Schema of each kind, with a place for its description.
var schemas = [2]map[kind]string{
	first: {
		word: `{"type":"string","description":%q}`, count: `{"type":"integer","description":%q}`,
		money: `{"type":"integer","description":%q}`, moment: `{"type":"integer","description":%q}`, reference: `{"type":"string","description":%q}`,
	},
	second: {
		word: `{"type":"string","description":%q}`, count: `{"type":"integer","description":%q}`,
		money:     `{"type":"object","description":%q,"required":["amount","currency"],"properties":{"amount":{"type":"integer","description":"In cents"},"currency":{"type":"string","description":"ISO 4217","pattern":"^[A-Z]{3}$"}}}`,
		moment:    `{"type":"string","format":"date-time","description":%q}`,
		reference: `{"type":"object","description":%q,"required":["id"],"properties":{"id":{"type":"string"}}}`,
		added:     `{"type":"string","format":"date-time","description":%q}`,
	},
}

func schemaOf(fields []field, f form) json.RawMessage {
	properties := []pair{{"id", `{"type":"string","description":"Its id"}`}}
	required := []string{"id"}
	add := func(name, schema string) {
		properties = append(properties, pair{name, schema})
		required = append(required, name)
	}
	hasMoney := false
	for _, one := range fields {
		schema, ok := schemas[f][one.kind]
		if !ok {
			continue
		}
		about := one.about
		if f == first && one.kind == money {
			about, hasMoney = about+", in cents", true
		}
		if f == first && one.kind == moment {
			about += ", in seconds since 1970"
		}
		add(one.name, fmt.Sprintf(schema, about))
	}
	if hasMoney {
		add("currency", `{"type":"string","description":"ISO 4217, of all amounts","pattern":"^[A-Z]{3}$"}`)
	}
	names, _ := json.Marshal(required) // strings always can be
	return json.RawMessage(members([]pair{{"type", `"object"`}, {"required", string(names)}, {"properties", members(properties)}}))
}

func exampleOf(id string, fields []field, f form) json.RawMessage {
	pairs := []pair{{"id", strconv.Quote(id)}}
	hasMoney := false
	for _, one := range fields {
		value := strconv.Quote(one.example)
		switch {
		case one.kind == count, one.kind == money && f == first:
			value = one.example
		case one.kind == money:
			value = `{"amount":` + one.example + `,"currency":"EUR"}`
		case one.kind == moment && f == first:
			value = seconds(one.example)
		case one.kind == reference && f == second:
			value = `{"id":` + value + `}`
		case one.kind == added && f == first:
			continue
		}
		hasMoney = hasMoney || one.kind == money
		pairs = append(pairs, pair{one.name, value})
	}
	if hasMoney && f == first {
		pairs = append(pairs, pair{"currency", `"EUR"`})
	}
	return json.RawMessage(members(pairs))
}

func seconds(moment string) string {
	at, err := time.Parse(time.RFC3339, moment)
	if err != nil {
		return moment
	}
	return strconv.FormatInt(at.Unix(), 10)
}

// older makes the state of the first version from that of the second. Fields that it does
// not know stay as they are.
func older(data map[string]json.RawMessage, fields []field) (map[string]json.RawMessage, error) {
	for _, f := range fields {
		value, there := data[f.name]
		if !there || string(value) == "null" && f.kind != added {
			continue
		}
		var err error
		switch f.kind {
		case money:
			err = flattened(data, f.name, value)
		case moment:
			var at time.Time
			if err = json.Unmarshal(value, &at); err == nil {
				data[f.name] = json.RawMessage(strconv.FormatInt(at.Unix(), 10))
			}
		case reference:
			var to struct{ ID json.RawMessage }
			err = json.Unmarshal(value, &to)
			data[f.name] = to.ID
		case added:
			delete(data, f.name)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return data, nil
}

// flattened takes the currency out of an amount.
func flattened(data map[string]json.RawMessage, name string, value json.RawMessage) error {
	var m struct{ Amount, Currency json.RawMessage }
	if err := json.Unmarshal(value, &m); err != nil {
		return err
	}
	data[name], data["currency"] = m.Amount, m.Currency
	return nil
}
