package main

import (
	"encoding/json"

	"github.com/surehook/surehook/sender/catalogue"
)

// firstForm is the date of the data that the consumer was written for.
const firstForm = "2025-03-01"

// planChanged is the data of customer.plan_changed in its newest version, and oldPlanChanged
// in its first.
type (
	planChanged struct {
		Plan struct {
			Name string `json:"name"`
		} `json:"plan"`
	}
	oldPlanChanged struct {
		Plan string `json:"plan"`
	}
)

// eventTypes is the producer's catalogue.
func eventTypes() (*catalogue.Catalogue, error) {
	object := func(plan string) json.RawMessage {
		return json.RawMessage(`{"type":"object","required":["plan"],"properties":{"plan":` + plan + `}}`)
	}
	example := func(data string) []catalogue.Example {
		return []catalogue.Example{{ObjectID: "ada", Data: json.RawMessage(data)}}
	}
	return catalogue.New([]catalogue.Type{{
		Name: "customer.plan_changed", Object: "customer", Kind: catalogue.State, Description: "A customer has another plan.",
		Versions: []catalogue.Version{
			{Since: firstForm, Schema: object(`{"type":"string"}`), Examples: example(`{"plan":"pro"}`)},
			{
				Since: "2026-11-25", Changes: "plan is an object.",
				Schema: object(`{"type":"object","required":["name"],"properties":{"name":{"type":"string"}}}`), Examples: example(`{"plan":{"name":"pro"}}`),
				Down: catalogue.Converter(func(newer planChanged) (oldPlanChanged, error) { return oldPlanChanged{newer.Plan.Name}, nil }),
			},
		},
	}})
}
