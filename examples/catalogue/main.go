// Command catalogue shows what comes of a catalogue of event types: the shop's, which has 50
// types in two versions each. Put your own in its place.
//
//	go run ./examples/catalogue > openapi.json                  # for your customers
//	go run ./examples/catalogue -at 2025-03-01 > openapi.json   # for those who are pinned to a date
//	go run ./examples/catalogue -state > catalogue.json         # for surehook catalogue diff, in CI
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/surehook/surehook/sender/catalogue"
	"github.com/surehook/surehook/sender/catalogue/jsonschema"
	"github.com/surehook/surehook/sender/catalogue/shop"
)

func main() {
	state := flag.Bool("state", false, "print the catalogue's state")
	at := flag.String("at", "", "print what a customer gets who is pinned to this `date`")
	flag.Parse()
	if err := show(os.Stdout, *state, *at); err != nil {
		log.Fatal(err)
	}
}

func show(w io.Writer, state bool, at string) error {
	types, err := shop.New()
	if err != nil {
		return err
	}
	// All examples, and what the converters make of them, fit their schemas.
	if _, err := jsonschema.New(types); err != nil {
		return err
	}
	if state {
		e := json.NewEncoder(w)
		e.SetIndent("", " ")
		return e.Encode(types)
	}
	doc, err := types.OpenAPI(catalogue.Info{Title: "Shop", Description: "What happens in a shop that bills.", At: at})
	if err == nil {
		_, err = fmt.Fprintf(w, "%s", doc)
	}
	return err
}
