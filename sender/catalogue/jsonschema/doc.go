// Package jsonschema checks what is published against the schemas of a catalogue, with
// github.com/santhosh-tekuri/jsonschema, which passes the official suite of all drafts. It is
// a module of its own, so that nobody else links that.
//
//	checker, err := jsonschema.New(types)
//	s, err := surehook.NewSender(store, key, &surehook.SenderConfig{Catalogue: types, PublishCheck: checker.Always()})
//
// [New] compiles all schemas, and checks all examples against them, and what the converters
// make of the examples. A schema of draft 2020-12 is expected where none is named. Formats are
// checked. References lead into the schema itself or to the drafts; nothing is loaded from
// files or from the network.
//
// A check costs some microseconds for a small payload. [Checker.Always] refuses what is wrong,
// so that it is never sent; [Checker.Sampled] checks some of all payloads and only reports;
// [Checker.InTest] makes a test fail.
package jsonschema
