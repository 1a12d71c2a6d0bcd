package catalogue

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Info is what an OpenAPI document says of the service.
type Info struct {
	// Title is the service's name. The default is "Webhooks".
	Title string

	// Version is the document's own. The default is At, or else the catalogue's newest date.
	Version string

	// Description says more about the service, in Markdown.
	Description string

	// At is a date: each type is shown in the version that a subscription gets which is
	// pinned to it. "": in its newest.
	At string
}

// OpenAPI returns the catalogue as an OpenAPI 3.1 document, whose webhooks are the types. The
// same catalogue and info give the same bytes. Schemas are components of it, so their
// references lead to these. Every $id and $anchor is left out, since types may share schemas: what
// referred to one refers to its place.
func (c *Catalogue) OpenAPI(info Info) ([]byte, error) {
	at := info.At
	switch {
	case at == "":
		at = c.Newest()
	case !isDate(at):
		return nil, fmt.Errorf("sender/catalogue: Info.At is %q: it must be a date as 2026-11-25, or empty for the newest versions", at)
	}
	version := info.Version
	if version == "" {
		version = at
	}
	if version == "" {
		version = "1"
	}
	title := info.Title
	if title == "" {
		title = "Webhooks"
	}
	var webhooks, schemas, tags members
	for _, g := range c.Groups() {
		if g.Name != "" {
			tags = append(tags, member{"name", g.Name})
		}
	}
	for i := range c.types {
		t := &c.types[i]
		v := t.At(at)
		var data any
		if v.Schema != nil {
			moved, err := moved(v.Schema, "#/components/schemas/"+t.Name)
			if err != nil {
				return nil, fmt.Errorf("sender/catalogue: type %q: Schema: %w", t.Name, err)
			}
			schemas = append(schemas, member{t.Name, moved})
			data = members{{"$ref", "#/components/schemas/" + t.Name}}
		}
		webhooks = append(webhooks, member{t.Name, members{{"post", t.operation(v, data)}}})
	}
	listed := make([]members, len(tags))
	for i := range tags {
		listed[i] = members{tags[i]}
	}
	doc := members{
		{"openapi", "3.1.0"},
		{"info", members{{"title", title}, {"version", version}, {"description", text(info.Description)}}},
	}
	if len(listed) > 0 {
		doc = append(doc, member{"tags", listed})
	}
	doc = append(doc, member{"webhooks", webhooks})
	if len(schemas) > 0 {
		doc = append(doc, member{"components", members{{"schemas", schemas}}})
	}
	var out bytes.Buffer
	b, err := encode(doc)
	if err == nil {
		err = json.Indent(&out, b, "", "  ")
	}
	return append(out.Bytes(), '\n'), err
}

// operation is the POST of a type.
func (t *Type) operation(v *Version, data any) members {
	op := members{{"operationId", t.Name}}
	if t.Group != "" {
		op = append(op, member{"tags", []string{t.Group}})
	}
	about := t.Description
	if t.Deprecated != "" {
		about = strings.TrimSpace(about + "\n\nDeprecated: " + t.Deprecated)
	}
	op = append(op, member{"description", text(about)}, member{"x-surehook-kind", t.Kind})
	if t.Deprecated != "" {
		op = append(op, member{"deprecated", true})
	}
	var examples members
	for i := range v.Examples {
		e := &v.Examples[i]
		examples = append(examples, member{v.nameOf(e), members{{"value", t.BodyExample(v, e)}}})
	}
	return append(op,
		member{"requestBody", members{
			{"required", true},
			{"content", members{{"application/json", members{{"schema", t.bodySchema(v, data)}, {"examples", examples}}}}},
		}},
		member{"responses", members{{"2XX", members{{"description", "It was taken. Every other answer, and none in time, has it sent again later."}}}}},
	)
}

// nameOf is the name of an example. One that has none gets one that is free.
func (v *Version) nameOf(e *Example) string {
	if e.Name != "" {
		return e.Name
	}
	name := "example"
	for slices.ContainsFunc(v.Examples, func(other Example) bool { return other.Name == name }) {
		name = "another " + name
	}
	return name
}
