package filter_test

import (
	"fmt"
	"log"

	"github.com/surehook/surehook/sender/filter"
)

// A filter is read once, and then asked about each event's body.
func Example() {
	f, err := filter.Parse([]byte(`{"data.status": "paid", "data.amount": {"gte": 100}}`))
	if err != nil {
		log.Fatal(err)
	}
	body := []byte(`{"object":{"type":"invoice","id":"in_1"},"data":{"status":"paid","amount":42}}`)
	fmt.Println(f.Match(body))
	for _, reason := range f.Explain(body) {
		fmt.Println(reason)
	}
	// Output:
	// false
	// data.amount >= 100 does not hold: it is 42
}

// An error says what is wrong and where.
func ExampleParse() {
	_, err := filter.Parse([]byte(`{"or": [{"data.status": "paid"}, {"data.amount": {"gt": true}}]}`))
	fmt.Println(err)
	// Output:
	// or[1]["data.amount"].gt: it must be a number or a string: nothing else is less or greater
}
