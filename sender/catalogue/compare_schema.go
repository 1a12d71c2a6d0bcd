package catalogue

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// comparison compares two schemas for those who have written code by the older one: whatever
// fits the newer one must fit the older one.
type comparison struct {
	at            Change // with all but Path and What
	before, after any    // the whole schemas, for references
	changes       []Change

	// settled are pairs that need not be compared: nothing was found in them, or they are
	// being compared already. Schemas may refer to themselves, and to each other in many
	// ways.
	settled map[pair]bool
}

// pair is a schema and what has become of it, by their addresses.
type pair struct{ was, is uintptr }

// maxFollowed bounds how many references lead to a schema one after the other, and mostFound
// how many changes of a version are listed.
const (
	maxFollowed = 32
	mostFound   = 500
)

func (c *comparison) found(breaks bool, path, format string, args ...any) {
	change := c.at
	if len(c.changes) == mostFound {
		breaks, path, format, args = true, "", "there are more than %d changes: compare the rest by hand", []any{mostFound}
	}
	if len(c.changes) > mostFound {
		return
	}
	change.Breaks, change.Path, change.What = breaks, path, fmt.Sprintf(format, args...)
	c.changes = append(c.changes, change)
}

// annotations say nothing about which data fits.
var annotations = map[string]bool{
	"title": true, "description": true, "examples": true, "example": true, "default": true, "deprecated": true, "readOnly": true, "writeOnly": true,
	"$comment": true, "$schema": true, "$id": true, "$defs": true, "definitions": true,
}

// limits only take values away, so a new one breaks nobody.
var limits = map[string]bool{
	"minimum": true, "maximum": true, "exclusiveMinimum": true, "exclusiveMaximum": true, "multipleOf": true, "minLength": true, "maxLength": true, "pattern": true,
	"format": true, "minItems": true, "maxItems": true, "uniqueItems": true, "minProperties": true, "maxProperties": true, "additionalProperties": true,
}

// compared are the keywords that have a comparison of their own.
var compared = map[string]bool{"type": true, "properties": true, "required": true, "items": true, "enum": true, "const": true}

func (c *comparison) schema(path string, before, after any) {
	before, plain := resolved(c.before, before)
	after, plainToo := resolved(c.after, after)
	if len(c.changes) > mostFound || reflect.DeepEqual(before, true) {
		return // nothing was said
	}
	if !plain || !plainToo {
		if !c.same(before, after, false) {
			c.found(true, path, "a reference that is not followed stands in it: compare by hand what it allows")
		}
		return
	}
	was, ok := before.(map[string]any)
	if !ok { // false: nothing was allowed
		if !reflect.DeepEqual(before, after) {
			c.found(true, path, "there was to be nothing, and now there is")
		}
		return
	}
	if after == false {
		return
	}
	is, ok := after.(map[string]any)
	if !ok {
		is = anything
	}
	both := pair{reflect.ValueOf(was).Pointer(), reflect.ValueOf(is).Pointer()}
	if c.settled[both] {
		return
	}
	c.settled[both] = true
	n := len(c.changes)
	defer func() {
		if len(c.changes) > n {
			delete(c.settled, both)
		}
	}()
	c.types(path, was, is)
	c.choices(path, was, is)
	c.properties(path, was, is)
	c.items(path, was, is)
	c.others(path, was, is)
}

func (c *comparison) items(path string, was, is map[string]any) {
	items, had := was["items"]
	now, has := is["items"]
	switch {
	case had && !has:
		c.schema(path+"/[]", items, true)
	case had:
		c.schema(path+"/[]", items, now)
	case has: // they were to be like this
		if items, had = was["unevaluatedItems"]; had {
			c.schema(path+"/[]", items, now)
		}
	}
}

// anything is the schema that says nothing.
var anything = map[string]any{}

// resolved follows references within a schema. ok is false if one is not followed: it does not
// lead into its own schema by names, it leads to nothing, or in a circle, or other keywords that
// count stand beside it.
func resolved(root, schema any) (_ any, ok bool) {
	for range maxFollowed {
		m, _ := schema.(map[string]any)
		refers := false
		for key := range references {
			_, there := m[key]
			refers = refers || there
		}
		if !refers {
			return schema, true
		}
		for key := range m {
			if key != "$ref" && !annotations[key] {
				return schema, false
			}
		}
		ref, isText := m["$ref"].(string)
		if !isText || !isPointer(ref) {
			return schema, false
		}
		to, there := pointedTo(root, ref)
		if !there {
			return schema, false
		}
		schema = to
	}
	return schema, false
}

// references are the keywords that lead to another schema.
var references = map[string]bool{"$ref": true, "$dynamicRef": true, "$recursiveRef": true}

// isPointer tells whether a reference leads into its own schema by names.
func isPointer(ref string) bool { return ref == "#" || strings.HasPrefix(ref, "#/") }

// pointedTo is what a reference leads to, if there is something. It is a JSON Pointer as a
// fragment of a URI (RFC 6901, section 6).
func pointedTo(root any, ref string) (_ any, there bool) {
	for _, step := range strings.Split(ref, "/")[1:] {
		step, err := url.PathUnescape(step)
		if err != nil {
			return nil, false
		}
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch in := root.(type) {
		case map[string]any:
			if root, there = in[step]; !there {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(in) {
				return nil, false
			}
			root = in[i]
		default:
			return nil, false
		}
	}
	return root, true
}

func (c *comparison) types(path string, was, is map[string]any) {
	old, now := typesOf(was), typesOf(is)
	if old == nil {
		return
	}
	if now == nil {
		now = typesOfValues(choicesOf(is))
	}
	if now == nil {
		c.found(true, path, "it was of type %s, and may be of any", strings.Join(old, " or "))
		return
	}
	for _, t := range now {
		if !slices.Contains(old, t) && !(t == "integer" && slices.Contains(old, "number")) {
			c.found(true, path, "it was of type %s, and is of type %s", strings.Join(old, " or "), strings.Join(now, " or "))
			return
		}
	}
}

func typesOf(schema map[string]any) (types []string) {
	switch t := schema["type"].(type) {
	case string:
		return []string{t}
	case []any:
		for _, one := range t {
			types = append(types, fmt.Sprint(one))
		}
	}
	return types
}

// typesOfValues are the types of values that a schema lists.
func typesOfValues(values []any) (types []string) {
	for _, v := range values {
		t := "null"
		switch v := v.(type) {
		case string:
			t = "string"
		case bool:
			t = "boolean"
		case json.Number:
			if t = "number"; !strings.ContainsAny(v.String(), ".eE") {
				t = "integer"
			}
		case []any:
			t = "array"
		case map[string]any:
			t = "object"
		}
		if !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	return types
}

// choices compares the values that a schema lists.
func (c *comparison) choices(path string, was, is map[string]any) {
	old, now := choicesOf(was), choicesOf(is)
	if old == nil {
		return
	}
	if now == nil {
		c.found(true, path, "it was one of %s, and may be another value", words(old))
		return
	}
	added := slices.DeleteFunc(slices.Clone(now), func(v any) bool {
		return slices.ContainsFunc(old, func(o any) bool { return reflect.DeepEqual(o, v) })
	})
	if len(added) > 0 {
		c.found(true, path, "it may be %s now, besides %s", words(added), words(old))
	}
}

func choicesOf(schema map[string]any) []any {
	if only, ok := schema["const"]; ok {
		return []any{only}
	}
	all, _ := schema["enum"].([]any)
	return all
}

func words(values []any) string {
	b, err := json.Marshal(values)
	if err != nil {
		return fmt.Sprint(values)
	}
	return strings.Trim(string(b), "[]")
}

func (c *comparison) properties(path string, was, is map[string]any) {
	old, _ := was["properties"].(map[string]any)
	now, _ := is["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(old)) {
		at := path + "/" + name
		if _, ok := now[name]; !ok {
			c.found(true, at, "it is gone")
			continue
		}
		c.schema(at, old[name], now[name])
	}
	required, _ := was["required"].([]any)
	for _, name := range required {
		key := fmt.Sprint(name)
		_, had := old[key]
		_, has := now[key]
		if gone := had && !has; !gone && !contains(is["required"], key) {
			c.found(true, path+"/"+key, "it was always there, and may be absent")
		}
	}
	others, told := was["additionalProperties"]
	if !told {
		others, told = was["unevaluatedProperties"]
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if _, ok := old[name]; ok {
			continue
		}
		at := path + "/" + name
		if others == false {
			c.found(true, at, "it is new, and there were to be no others")
			continue
		}
		c.found(false, at, "it is new")
		if told {
			c.schema(at, others, now[name])
		}
	}
}

func contains(list any, name string) bool {
	all, _ := list.([]any)
	return slices.ContainsFunc(all, func(v any) bool { return v == name })
}

// others compares the keywords that have no comparison of their own.
func (c *comparison) others(path string, was, is map[string]any) {
	all := maps.Clone(was)
	maps.Copy(all, is)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		old, had := was[key]
		now, has := is[key]
		switch {
		case annotations[key] || compared[key] || had && has && c.same(old, now, named[key]):
		case !had && limits[key] && !(key == "additionalProperties" && was["unevaluatedProperties"] != nil):
			c.found(false, path, "%s is new, and only takes values away", key)
		case !had:
			c.found(true, path, "%s is new: compare by hand what it allows", key)
		case !has:
			c.found(true, path, "%s is gone, which allowed less", key)
		case key == "additionalProperties" && now == false:
			c.found(false, path, "there are no further properties now")
		default:
			c.found(true, path, "%s was changed: compare by hand what it allows", key)
		}
	}
}

// named are the keywords whose members have names that are no keywords.
var named = map[string]bool{"properties": true, "patternProperties": true, "dependentSchemas": true, "dependentRequired": true, "dependencies": true}

// defs are where schemas stand that are referred to.
var defs = []string{"#/$defs", "#/definitions"}

// same tells whether parts of the schemas that are not compared in detail say the same, and
// so does all that they refer to. names: their members are schemas by names.
func (c *comparison) same(before, after any, names bool) bool {
	followed := map[string]bool{}
	var refs []string
	if !reflect.DeepEqual(bare(before, names, &refs), bare(after, names, nil)) {
		return false
	}
	for len(refs) > 0 {
		ref := refs[0]
		if refs = refs[1:]; followed[ref] {
			continue
		}
		followed[ref] = true
		names := slices.Contains(defs, ref)
		was, _ := pointedTo(c.before, ref)
		is, _ := pointedTo(c.after, ref)
		if !reflect.DeepEqual(bare(was, names, &refs), bare(is, names, nil)) {
			return false
		}
	}
	return true
}

// bare is a schema without annotations. It adds the references in it to refs.
func bare(schema any, names bool, refs *[]string) any {
	switch v := schema.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, in := range v {
			switch ref, isText := in.(string); {
			case !names && annotations[key]:
				continue
			case !names && (key == "const" || key == "enum"):
				out[key] = in
				continue
			case names || !references[key] || refs == nil:
			case key == "$ref" && isText && isPointer(ref):
				*refs = append(*refs, ref)
			default: // it can lead to any of these
				*refs = append(*refs, defs...)
			}
			out[key] = bare(in, !names && named[key], refs)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, in := range v {
			out[i] = bare(in, false, refs)
		}
		return out
	}
	return schema
}
