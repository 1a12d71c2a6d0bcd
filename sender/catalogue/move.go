package catalogue

import (
	"bytes"
	"encoding/json"
	"strings"
)

// moved is a schema as it stands at a place in a larger document: its references lead to what
// they led to before. All else stays as it is, in its order. Its own $id goes, since it is a part
// of another document now, and several types may share one schema.
func moved(schema json.RawMessage, to string) (json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(schema))
	d.UseNumber()
	v, err := ordered(d)
	if err != nil {
		return nil, err
	}
	m := move{to: to}
	if top, ok := v.(members); ok {
		m.id = ownID(top)
		v = m.members(top, true)
	}
	return encode(v)
}

// ordered decodes a value whose objects are members: their names stay in their order.
func ordered(d *json.Decoder) (any, error) {
	t, err := d.Token()
	switch {
	case err != nil:
		return nil, err
	case t == nil:
		return json.RawMessage("null"), nil // members leave out nil
	case t == json.Delim('['):
		list := []any{}
		for d.More() {
			one, err := ordered(d)
			if err != nil {
				return nil, err
			}
			list = append(list, one)
		}
		_, err = d.Token()
		return list, err
	case t == json.Delim('{'):
		all := members{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			value, err := ordered(d)
			if err != nil {
				return nil, err
			}
			text, _ := name.(string)
			all = append(all, member{text, value})
		}
		_, err = d.Token()
		return all, err
	}
	return t, nil
}

// move is where a schema is moved to.
type move struct {
	to string
	id string // that the schema had; "": none
}

// noSchema are the keywords behind which there is none.
var noSchema = map[string]bool{"const": true, "enum": true, "default": true, "examples": true, "example": true}

// members moves the references of a schema.
func (m *move) members(schema members, top bool) members {
	out := make(members, 0, len(schema))
	for _, one := range schema {
		text, isText := one.value.(string)
		switch {
		case one.name == "$id" && isText && top && m.id != "":
			continue
		case (one.name == "$ref" || one.name == "$dynamicRef") && isText:
			one.value = m.reference(text)
		case !noSchema[one.name]:
			one.value = m.value(one.value, named[one.name] || one.name == "$defs" || one.name == "definitions")
		}
		out = append(out, one)
	}
	return out
}

// value moves the references in what stands behind a keyword. names: its members are schemas by
// names. A schema with an $id is a document of its own, into which its references lead.
func (m *move) value(v any, names bool) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = m.value(v[i], false)
		}
	case members:
		if names {
			for i := range v {
				v[i].value = m.value(v[i].value, false)
			}
			return v
		}
		if ownID(v) == "" {
			return m.members(v, false)
		}
	}
	return v
}

func (m *move) reference(ref string) string {
	own := ref
	if m.id != "" {
		if rest, ok := strings.CutPrefix(ref, m.id); ok && (rest == "" || rest[0] == '#') {
			own = "#" + strings.TrimPrefix(rest, "#")
		}
	}
	if !isPointer(own) {
		return ref
	}
	return m.to + strings.TrimPrefix(own, "#")
}

// ownID is the $id of a schema, or "" if it has none. One that is only a fragment names a place,
// as $anchor does.
func ownID(schema members) string {
	for _, one := range schema {
		if id, ok := one.value.(string); ok && one.name == "$id" && !strings.HasPrefix(id, "#") {
			return strings.TrimSuffix(id, "#")
		}
	}
	return ""
}
