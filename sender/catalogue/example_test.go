package catalogue_test

import (
	"encoding/json"
	"fmt"
	"log"

	"github.com/surehook/surehook/sender/catalogue"
)

// A type of two versions. Customers who are pinned to a date before the second one go on
// getting the first.
func Example() {
	type older struct {
		Cents int `json:"cents"`
	}
	type newer struct {
		Total struct {
			Amount   int    `json:"amount"`
			Currency string `json:"currency"`
		} `json:"total"`
	}
	types, err := catalogue.New([]catalogue.Type{{
		Name: "invoice.paid", Group: "Invoices", Object: "invoice", Kind: catalogue.State,
		Description: "An invoice was paid in full.",
		Versions: []catalogue.Version{
			{Examples: []catalogue.Example{{ObjectID: "in_1", Data: json.RawMessage(`{"cents":4200}`)}}},
			{
				Since: "2026-11-25", Changes: "The sum has its currency.",
				Examples: []catalogue.Example{{ObjectID: "in_1", Data: json.RawMessage(`{"total":{"amount":4200,"currency":"EUR"}}`)}},
				Down:     catalogue.Converter(func(n newer) (older, error) { return older{n.Total.Amount}, nil }),
			},
		},
	}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("published in version", types.PayloadVersion("invoice.paid"))
	_, data, err := types.Convert("invoice.paid", "2026-11-25", "2026-01-01", json.RawMessage(`{"total":{"amount":990,"currency":"EUR"}}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("pinned to January: %s\n", data)
	// Output:
	// published in version 2026-11-25
	// pinned to January: {"cents":990}
}
