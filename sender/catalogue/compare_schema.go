package catalogue

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// comparison compares two schemas for those who have written code by the older one: whatever
// fits the newer one must fit the older one.
type comparison struct {
	at            Change // with all but Path and What
	before, after any    // the whole schemas, for references
	changes       []Change
}

// maxCompared bounds how deep schemas are compared: they may refer to themselves.
const maxCompared = 32

func (c *comparison) found(breaks bool, path, format string, args ...any) {
	change := c.at
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

func (c *comparison) schema(path string, before, after any, depth int) {
	before, after = resolved(c.before, before), resolved(c.after, after)
	if depth > maxCompared || reflect.DeepEqual(before, true) {
		return // nothing was said
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
		is = map[string]any{}
	}
	c.types(path, was, is)
	c.choices(path, was, is)
	c.properties(path, was, is, depth)
	if items, ok := was["items"]; ok {
		now, ok := is["items"]
		if !ok {
			now = true
		}
		c.schema(path+"/[]", items, now, depth+1)
	}
	c.others(path, was, is)
}

// resolved follows references within a schema.
func resolved(root, schema any) any {
	for range maxCompared {
		m, ok := schema.(map[string]any)
		ref, isRef := m["$ref"].(string)
		if !ok || !isRef || !strings.HasPrefix(ref, "#") {
			return schema
		}
		schema = root
		for _, step := range strings.Split(strings.TrimPrefix(ref, "#"), "/")[1:] {
			m, _ := schema.(map[string]any)
			if schema, ok = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]; !ok {
				return true
			}
		}
	}
	return true
}

func (c *comparison) types(path string, was, is map[string]any) {
	old, now := typesOf(was), typesOf(is)
	if old == nil {
		return
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

func (c *comparison) properties(path string, was, is map[string]any, depth int) {
	old, _ := was["properties"].(map[string]any)
	now, _ := is["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(old)) {
		at := path + "/" + name
		if _, ok := now[name]; !ok {
			c.found(true, at, "it is gone")
			continue
		}
		if contains(was["required"], name) && !contains(is["required"], name) {
			c.found(true, at, "it was always there, and may be absent")
		}
		c.schema(at, old[name], now[name], depth+1)
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if _, ok := old[name]; !ok {
			closed := was["additionalProperties"] == false
			what := "it is new"
			if closed {
				what = "it is new, and there were to be no others"
			}
			c.found(closed, path+"/"+name, "%s", what)
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
		case annotations[key] || compared[key] || reflect.DeepEqual(old, now) && had == has:
		case !had && limits[key]:
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
