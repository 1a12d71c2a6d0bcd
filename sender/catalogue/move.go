package catalogue

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
)

// moved is a schema as it stands at a place in a larger document: its references lead to what
// they led to before. All else stays as it is, in its order. Every $id and $anchor in it goes,
// and references lead to the places that had them: it is a part of another document now, in
// which other types may have the same schema, and no two schemas may have one name.
func moved(schema json.RawMessage, to string) (json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(schema))
	d.UseNumber()
	v, err := ordered(d)
	if err != nil {
		return nil, err
	}
	m := move{to: to, places: map[string]string{"": ""}}
	m.find(v, "", "", false)
	return encode(m.value(v, "", false))
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
	to     string
	places map[string]string // what has an $id or an $anchor, by its URI: where it is in the schema
}

// noSchema are the keywords behind which there is none.
var noSchema = map[string]bool{"const": true, "enum": true, "default": true, "examples": true, "example": true}

// names tells whether the members of what stands behind a keyword are schemas by names.
func names(keyword string) bool {
	return named[keyword] || keyword == "$defs" || keyword == "definitions"
}

// find notes the places of what has a URI. base is that of the schema around v, and at its
// place. byNames: the members of v are schemas by names.
func (m *move) find(v any, base, at string, byNames bool) {
	switch v := v.(type) {
	case []any:
		for i := range v {
			m.find(v[i], base, at+"/"+strconv.Itoa(i), false)
		}
	case members:
		if !byNames {
			base = baseOf(v, base)
			if _, known := m.places[base]; !known {
				m.places[base] = at
			}
		}
		for _, one := range v {
			if anchor, ok := anchorOf(&one); ok && !byNames {
				m.places[base+"#"+anchor] = at
			}
			if byNames || !noSchema[one.name] {
				m.find(one.value, base, at+"/"+url.PathEscape(pointer.Replace(one.name)), !byNames && names(one.name))
			}
		}
	}
}

var pointer = strings.NewReplacer("~", "~0", "/", "~1")

// value moves the references in v, which is as for find.
func (m *move) value(v any, base string, byNames bool) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = m.value(v[i], base, false)
		}
	case members:
		if !byNames {
			return m.members(v, baseOf(v, base))
		}
		for i := range v {
			v[i].value = m.value(v[i].value, base, false)
		}
	}
	return v
}

// members moves the references of a schema.
func (m *move) members(schema members, base string) members {
	out := make(members, 0, len(schema))
	for _, one := range schema {
		text, isText := one.value.(string)
		_, anchor := anchorOf(&one)
		switch {
		case anchor, one.name == "$id" && isText:
			continue
		case (one.name == "$ref" || one.name == "$dynamicRef") && isText:
			one.value = m.reference(text, base)
		case !noSchema[one.name]:
			one.value = m.value(one.value, base, names(one.name))
		}
		out = append(out, one)
	}
	return out
}

// reference is what a reference is to be that led to ref before. One that leads out of the schema
// stays as it is.
func (m *move) reference(ref, base string) string {
	whole, fragment, _ := strings.Cut(ref, "#")
	whole = absolute(base, whole)
	if at, ok := m.places[whole]; ok && (fragment == "" || fragment[0] == '/') {
		return m.to + at + fragment
	}
	if at, ok := m.places[whole+"#"+fragment]; ok {
		return m.to + at
	}
	return ref
}

// baseOf is the URI of a schema that stands in one with another. An $id that is only a fragment
// names a place, as $anchor does.
func baseOf(schema members, around string) string {
	for _, one := range schema {
		if id, ok := one.value.(string); ok && one.name == "$id" && !strings.HasPrefix(id, "#") {
			id, _, _ = strings.Cut(id, "#")
			return absolute(around, id)
		}
	}
	return around
}

// anchorOf is the name that a keyword gives its schema.
func anchorOf(keyword *member) (name string, ok bool) {
	text, isText := keyword.value.(string)
	switch {
	case isText && keyword.name == "$anchor":
		return text, true
	case isText && keyword.name == "$id":
		return strings.CutPrefix(text, "#")
	}
	return "", false
}

// absolute is a URI without a fragment as it is meant in a schema that has the URI base.
func absolute(base, uri string) string {
	b, err := url.Parse(base)
	if err != nil || uri == "" {
		return base
	}
	u, err := b.Parse(uri)
	if err != nil {
		return uri
	}
	return u.String()
}
