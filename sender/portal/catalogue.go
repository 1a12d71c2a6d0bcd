package portal

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/surehook/surehook/sender"
)

// EventType is an entry of the catalogue of events.
type EventType struct {
	// Name is the type, exactly: invoice.paid.
	Name string
	// Description says when it happens, in a sentence or two.
	Description string
	// Group is the heading that it stands under, with its neighbours of the same Group.
	Group string
	// Schema describes what is posted: a JSON Schema, whose properties are shown as a
	// table of fields. Nil: none is shown.
	Schema json.RawMessage
	// Example is what is posted, as JSON. Nil: none is shown.
	Example json.RawMessage
}

func catalogueProblems(all []EventType) (errs []error) {
	seen := map[string]bool{}
	for i, t := range all {
		bad := func(wrong bool, what string) {
			if wrong {
				errs = append(errs, fmt.Errorf("sender/portal: Config.EventTypes[%d], %q: %s", i, t.Name, what))
			}
		}
		bad(t.Name == "" || strings.ContainsAny(t.Name, "*, \t\n") || !plainText(t.Name), "Name must be an exact type, such as invoice.paid")
		bad(seen[t.Name], "it is there twice")
		bad(t.Schema != nil && !json.Valid(t.Schema), "Schema is no JSON")
		bad(t.Example != nil && !json.Valid(t.Example), "Example is no JSON")
		seen[t.Name] = true
	}
	return errs
}

type eventTypesView struct {
	Groups []typeGroup
	Number int
	Shown  EventType
	Fields []field
	Takers []sender.Subscription // the endpoints that get it
	More   bool                  // there are more endpoints than were looked at
}

// field is a property of a schema.
type field struct{ Name, Type, Meaning string }

func (p *Portal) eventTypes(ctx context.Context, r *http.Request) (view, error) {
	if len(p.cfg.EventTypes) == 0 {
		return view{}, errNoPage
	}
	shown := p.cfg.EventTypes[0]
	if name := r.URL.Query().Get("type"); name != "" {
		i := slices.IndexFunc(p.cfg.EventTypes, func(t EventType) bool { return t.Name == name })
		if i < 0 {
			return view{}, errNoPage
		}
		shown = p.cfg.EventTypes[i]
	}
	f := p.formOf("", "", []string{shown.Name})
	v := eventTypesView{Groups: f.Groups, Number: len(p.cfg.EventTypes), Shown: shown, Fields: fieldsOf(shown.Schema, "", 0)}
	const looked = 100
	list, err := p.b.Registry.Subscriptions(ctx, sessionIn(ctx).Subscriber, "", looked)
	if err != nil {
		return view{}, err
	}
	for _, e := range list {
		if slices.ContainsFunc(e.EventTypes, func(asked string) bool { return sender.TypeMatches(asked, shown.Name) }) {
			v.Takers = append(v.Takers, e)
		}
	}
	v.More = len(list) == looked
	return view{title: "Event types", tab: "event types", data: &v}, nil
}

// maxDepth bounds how deep a schema's objects are shown.
const maxDepth = 4

// fieldsOf lists the properties of a JSON Schema in their order, and of the objects in it.
func fieldsOf(schema json.RawMessage, under string, depth int) (all []field) {
	var s struct{ Properties json.RawMessage }
	if json.Unmarshal(schema, &s) != nil || s.Properties == nil || depth > maxDepth {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(string(s.Properties)))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for d.More() {
		name, err := d.Token()
		var inner json.RawMessage
		if err != nil || d.Decode(&inner) != nil {
			return all
		}
		var about struct {
			Type                       any
			Title, Description, Format string
			Const                      any
		}
		_ = json.Unmarshal(inner, &about) // true and false are schemas, too
		f := field{Name: under + fmt.Sprint(name), Meaning: cmp.Or(about.Description, about.Title)}
		if about.Type != nil {
			f.Type = strings.Trim(fmt.Sprint(about.Type), "[]")
		}
		if f.Meaning == "" && about.Const != nil {
			f.Meaning = fmt.Sprint(about.Const)
		}
		f.Type = strings.TrimSpace(f.Type + " " + about.Format)
		all = append(append(all, f), fieldsOf(inner, f.Name+".", depth+1)...)
	}
	return all
}
