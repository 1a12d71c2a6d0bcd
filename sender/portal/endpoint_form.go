package portal

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/surehook/surehook/sender"
)

// entries are the fields of an endpoint's form.
type entries struct {
	URL, Description string
	Types            []string
	Order            sender.Order
	Filter           string
	Version          string // of the data
}

// orderRelaxed is the value in the form of the order that settings call by no name.
const orderRelaxed = "relaxed"

func entriesOf(form url.Values) entries {
	e := entries{
		URL: strings.TrimSpace(form.Get("url")), Description: form.Get("description"), Types: typesTyped(form),
		Order: sender.Order(form.Get("order")), Filter: strings.TrimSpace(form.Get("filter")), Version: form.Get("payload_version"),
	}
	if e.Order == orderRelaxed {
		e.Order = sender.OrderRelaxed
	}
	return e
}

// entriesIn are those of an endpoint as it is.
func entriesIn(e *sender.Subscription) entries {
	return entries{e.URL, e.Description, e.EventTypes, e.Settings.Order, indented(e.Filter.String()), e.Settings.PayloadVersion}
}

// maxIndented is how many bytes a filter may have with its blanks. A browser sends up to three
// for each, and maxForm bounds them.
const maxIndented = 16 << 10

// indented is a filter as it is edited. One that is no JSON, or has many short lines, stays as
// it is.
func indented(filter string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(filter), "", "  ") != nil || b.Len() > maxIndented {
		return filter
	}
	return b.String()
}

// compact is a filter as it is sent to the registry, which bounds its length: without the blanks
// that indented has added. A text that is no JSON stays as it is.
func compact(filter string) string {
	var b bytes.Buffer
	if json.Compact(&b, []byte(filter)) != nil {
		return filter
	}
	return b.String()
}

// mark tells entries from others, as far as a form must know: it has that of the endpoint which
// its page showed.
func (e *entries) mark() string {
	text, _ := json.Marshal(e) // texts alone
	sum := sha256.Sum256(text)
	return b64.EncodeToString(sum[:12])
}

// settings are those of an endpoint with the order that was chosen. How long a version holds
// back others belongs to the one order, and ends with it.
func (e *entries) settings(s sender.Settings) sender.Settings {
	if s.Order != e.Order {
		s.Order, s.HoldTries, s.HoldFor, s.HoldDead = e.Order, 0, 0, false
	}
	return s
}

// typesTyped are the event types of a form: the boxes, and the text.
func typesTyped(form url.Values) []string {
	types := []string{} // none is refused, and nil would mean all
	types = append(types, form["type"]...)
	types = append(types, strings.FieldsFunc(form.Get("types"), func(c rune) bool { return c == ',' || c == ' ' || c == '\t' || c == '\r' || c == '\n' })...)
	if slices.Contains(types, "*") {
		return []string{"*"}
	}
	return types
}

// orderChoice is an order in a customer's words.
type orderChoice struct {
	Value, Word, Meaning string
	Chosen               bool
}

// ordersWith are all orders, with one of them chosen.
func ordersWith(chosen sender.Order) []orderChoice {
	return []orderChoice{
		{orderRelaxed, "In any order", "What failed is tried again, and later versions do not wait for it", chosen == sender.OrderRelaxed},
		{string(sender.OrderObject), "One version after another", "A version waits until we have sent, or given up, the earlier ones of its object", chosen == sender.OrderObject},
		{string(sender.OrderLatest), "Only the latest", "A newer version replaces those of its object that are not delivered yet", chosen == sender.OrderLatest},
	}
}
