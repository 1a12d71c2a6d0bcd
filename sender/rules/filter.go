package rules

import "github.com/surehook/surehook/sender/filter"

// Wants tells whether a subscription that an event matches (see sender.Matches) gets it: if
// the event is addressed to it alone, or its filter matches the event's body. An expansion
// decides it once for each event and subscription, when it comes to the subscription, by the
// filter that is stored then.
func Wants(f *filter.Filter, addressed bool, body []byte) bool {
	return addressed || f.Match(body)
}
