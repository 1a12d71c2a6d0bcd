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
	"github.com/surehook/surehook/sender/catalogue"
)

type eventTypesView struct {
	Groups   []catalogue.Group
	Number   int
	Shown    *catalogue.Type
	Version  *catalogue.Version // of it, which is shown
	Fields   []field
	Examples []example
	Changed  []catalogue.Version // its versions, the newest first; none: there is one
	Schema   json.RawMessage
	Takers   []taker
	More     bool // there are more endpoints than were looked at
}

// taker is an endpoint that gets a type.
type taker struct {
	sender.Subscription
	Version *catalogue.Version // that it gets
}

// example is what is posted of an event.
type example struct {
	Name string
	Body json.RawMessage
}

// versionsFor are the dates that an endpoint can be pinned to, the newest first, with its own
// at the end; none if there is no newer one.
func (p *Portal) versionsFor(e *sender.Subscription) []string {
	if p.cfg.Catalogue == nil {
		return nil
	}
	own := e.Settings.PayloadVersion
	newer := slices.DeleteFunc(p.cfg.Catalogue.Dates(), func(date string) bool { return date <= own })
	if len(newer) == 0 {
		return nil
	}
	return append(newer, own)
}

// field is a property of a schema.
type field struct{ Name, Type, Meaning string }

func (p *Portal) eventTypes(ctx context.Context, r *http.Request) (view, error) {
	if p.cfg.Catalogue == nil {
		return view{}, errNoPage
	}
	types := p.cfg.Catalogue.Types()
	shown := types[0]
	if name := r.URL.Query().Get("type"); name != "" {
		var ok bool
		if shown, ok = p.cfg.Catalogue.Lookup(name); !ok {
			return view{}, errNoPage
		}
	}
	v := eventTypesView{Groups: p.cfg.Catalogue.Groups(), Number: len(types), Shown: &shown}
	if len(shown.Versions) > 1 {
		v.Changed = slices.Clone(shown.Versions)
		slices.Reverse(v.Changed)
	}
	version := shown.Newest()
	if q := r.URL.Query(); q.Has("version") {
		i := slices.IndexFunc(shown.Versions, func(v catalogue.Version) bool { return v.Since == q.Get("version") })
		if i < 0 {
			return view{}, errNoPage
		}
		version = &shown.Versions[i]
	}
	v.Version = version
	if version.Schema != nil {
		v.Schema = shown.BodySchema(version)
		v.Fields = fieldsOf(v.Schema, "", 0)
	}
	for i := range version.Examples {
		v.Examples = append(v.Examples, example{version.Examples[i].Name, shown.BodyExample(version, &version.Examples[i])})
	}
	const looked = 100
	list, err := p.b.Registry.Subscriptions(ctx, sessionIn(ctx).Subscriber, "", looked)
	if err != nil {
		return view{}, err
	}
	for _, e := range list {
		if slices.ContainsFunc(e.EventTypes, func(asked string) bool { return sender.TypeMatches(asked, shown.Name) }) {
			v.Takers = append(v.Takers, taker{e, shown.At(e.Settings.PayloadVersion)})
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
