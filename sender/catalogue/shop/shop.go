// Package shop is a catalogue to copy from: the 50 event types of a shop that bills, each in
// two versions. The quickstart and the other examples, the command line's samples, and the
// tests of the portal and of the console use it.
//
// Events about one kind of object have its state as their data, so five events share a schema
// and a converter. From version 2025-03-01 to 2026-11-01 money became an object with its
// currency, times became RFC 3339, references became objects, and each state got the time of
// its last change.
package shop

import (
	"encoding/json"

	"github.com/surehook/surehook/sender/catalogue"
)

// The dates of the two versions.
const (
	First  = "2025-03-01"
	Second = "2026-11-01"
)

const changes = "Money is an object with its currency, times are RFC 3339, references are objects, and updated_at is new."

// New returns the catalogue.
func New() (*catalogue.Catalogue, error) {
	var types []catalogue.Type
	for _, o := range objects {
		for _, e := range o.events {
			types = append(types, o.typeOf(e))
		}
	}
	return catalogue.New(types)
}

// object is a kind of objects, with its state in the second version.
type object struct {
	name, group, id string
	fields          []field
	events          []event
}

// event is something that happens to an object.
type event struct {
	name, description string
	fact              string // of one that each counts: the field that says why, with its example
	deprecated        string
}

func (o *object) typeOf(e event) catalogue.Type {
	fields := o.fields
	t := catalogue.Type{
		Name: o.name + "." + e.name, Group: o.group, Object: o.name, Kind: catalogue.State, Description: e.description, Deprecated: e.deprecated,
	}
	if e.fact != "" {
		t.Kind = catalogue.Fact
		fields = append(fields[:len(fields):len(fields)], field{"reason", word, "Why", e.fact})
	}
	version := func(since, changes string, f form, down func(json.RawMessage) (json.RawMessage, error)) catalogue.Version {
		return catalogue.Version{
			Since: since, Changes: changes, Schema: schemaOf(fields, f), Down: down,
			Examples: []catalogue.Example{{ObjectID: o.id, Data: exampleOf(o.id, fields, f)}},
		}
	}
	t.Versions = []catalogue.Version{
		version(First, "", first, nil),
		version(Second, changes, second, catalogue.Converter(func(data map[string]json.RawMessage) (map[string]json.RawMessage, error) {
			return older(data, fields)
		})),
	}
	return t
}
