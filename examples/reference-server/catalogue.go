package main

import "github.com/surehook/surehook/sender/catalogue"

// eventTypes are the events of this service. It does not know the types that others publish
// through it.
func eventTypes() (*catalogue.Catalogue, error) {
	of := func(name, description string) catalogue.Type {
		return catalogue.Type{
			Name: "subscriber." + name, Group: "You", Object: "subscriber", Kind: catalogue.Thin, Description: description,
			Versions: []catalogue.Version{{Examples: []catalogue.Example{{ObjectID: anySubscriber}}}},
		}
	}
	return catalogue.New(append([]catalogue.Type{
		of("created", "The subscriber was created."), of("updated", "Its name or its attributes were changed."), of("deleted", "It was deleted."),
	}, catalogue.Own()...))
}
