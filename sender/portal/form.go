package portal

import (
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/sender/internal/look"
)

// storable tells whether all that was typed is text that a database takes.
func storable(v url.Values) bool {
	for name, values := range v {
		for _, text := range append(values, name) {
			if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
				return false
			}
		}
	}
	return true
}

// onceID is the id of what a form makes. once was drawn for the form's page. The same form sent
// again makes no second one, and one with other entries makes another one. No form of another
// subscriber has that id.
func onceID(prefix, subscriber, once, entries string) string {
	if once == "" { // it is not the form of a page
		return ""
	}
	return newid.Of(prefix, subscriber, once, entries)
}

func timeOf(name, text string) (time.Time, error) {
	t, ok := look.TypedTime(text)
	if !ok {
		return t, badInput(name + ": " + strconv.Quote(text) + " is no time: give one such as 2006-01-02T15:04 (UTC).")
	}
	return t, nil
}

// typed is a time as the field for one takes it.
func typed(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04")
}

func exactly(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") + " UTC" }

// with is a query with one parameter changed, as a link; an empty value removes it.
func with(q url.Values, name, value string) string {
	next := url.Values{}
	for n, values := range q {
		if n != "said" && len(values) > 0 && values[0] != "" {
			next.Set(n, values[0])
		}
	}
	next.Set(name, value)
	if value == "" {
		next.Del(name)
	}
	return "?" + next.Encode()
}
