// Package catalogue has a service's event types as Go values: what each is about, when it
// happens, what its data looks like, and in which versions.
//
//	types, err := catalogue.New([]catalogue.Type{{
//		Name: "invoice.paid", Group: "Invoices", Object: "invoice", Kind: catalogue.State,
//		Description: "An invoice was paid in full.",
//		Versions: []catalogue.Version{{
//			Schema:   json.RawMessage(`{"type":"object","required":["total"],"properties":{"total":{"type":"integer"}}}`),
//			Examples: []catalogue.Example{{ObjectID: "in_1", Data: json.RawMessage(`{"total":4200}`)}},
//		}},
//	}})
//
// One catalogue serves many readers. The portal and the console show it. [Catalogue.OpenAPI]
// renders it as OpenAPI 3.1 webhooks. Publishing can be checked against it: the module
// sender/catalogue/jsonschema has the checks, so that a service which does without them does
// not link them.
//
// # Payload versions
//
// The data of a type changes over the years, and customers change their code when they
// can. So a type has versions, each with the date since which it is there, and a
// subscription is pinned to a date when it is made: see sender.Settings.PayloadVersion. It
// gets each type in the newest version that was there on that date, and in the oldest if
// none was. Dates are one decision for all types, as customers know it from other
// services. A number for each type would be fifty decisions, and another one with each
// type that is added.
//
// An event is published in the newest version, and says so in its body (payload_version).
// For a subscription that is pinned to an older date its data goes through Version.Down,
// version by version. These are pure functions of the data. The first attempt of a
// delivery fixes its bytes. They are kept in the database before they are sent, and each
// later attempt sends them, even if other code was deployed in between. Package dispatch
// says more about it.
//
// [New] runs all examples through these functions. If the older version has an example of the
// same name, the result must be that example. So a catalogue whose converters contradict its
// examples does not start, in a test or anywhere else.
//
// [Compare] tells which changes between two states of a catalogue break which customers.
package catalogue
