package rules

import (
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/filter"
)

// Asked has what a subscription asks of the content of events.
type Asked struct {
	Filter *filter.Filter
	// Pinned is its Settings.PayloadVersion.
	Pinned string
}

// AskedBy is what a subscription with a filter and settings asks of the content. Settings
// that cannot be read do not tell the payload version: no filter is asked then, unless it
// matches nothing.
func AskedBy(f *filter.Filter, s *sender.Settings) Asked {
	if s.Unreadable() != nil && f.Unreadable() == nil {
		return Asked{}
	}
	return Asked{f, s.PayloadVersion}
}

// Equal tells whether both ask the same.
func (a Asked) Equal(b Asked) bool { return a.Pinned == b.Pinned && a.Filter.Equal(b.Filter) }

// Content is an event for the filters of all subscriptions that it matches (see
// sender.Matches). An expansion has one for each event. It keeps the bodies of older payload
// versions, so that each is made once, however many subscriptions get it. It is not safe for
// concurrent use.
type Content struct {
	Type    string
	Body    []byte // as it was published; empty: it was redacted
	Convert sender.Convert

	split   bool
	version string // of Body's data; "": it has none
	made    []made // of other versions
}

// made is a body for those that are pinned to the dates from the one to the other.
type made struct {
	from, to string
	body     []byte
	failed   bool // it could not be made
}

// Wants tells whether a subscription that the event matches gets it: if the event is
// addressed to it alone, or its filter matches the body that it gets, which is that of the
// payload version to which it is pinned. If that body cannot be made, the subscription
// gets the event as if it had no filter. Its delivery is put off, with a record in the
// log, until the body can be made. An expansion decides this once for each event and
// subscription, by what is stored when it comes to the subscription.
func (c *Content) Wants(a Asked, addressed bool) bool {
	if addressed || a.Filter == nil {
		return true
	}
	m, _ := c.at(a.Pinned)
	return m.failed && a.Filter.Unreadable() == nil || a.Filter.Match(m.body)
}

// Older tells whether the body for a subscription that is pinned to a date has still to be
// made.
func (c *Content) Older(pinned string) bool {
	_, made := c.known(pinned)
	return !made
}

// Make makes the body for a subscription that is pinned to a date, unless it is there. It
// returns how many bytes it has read for that.
func (c *Content) Make(pinned string) (bytes int) {
	_, bytes = c.at(pinned)
	return bytes
}

// known returns a body that need not be made.
func (c *Content) known(pinned string) (m made, ok bool) {
	if c.Convert == nil && pinned == "" {
		return made{body: c.Body}, true
	}
	if !c.split {
		_, p, _ := sender.SplitBody(c.Body)
		c.split, c.version = true, p.Version
	}
	if c.version <= pinned {
		return made{body: c.Body}, true
	}
	for _, m := range c.made {
		if m.from <= pinned && pinned <= m.to {
			return m, true
		}
	}
	return made{}, false
}

func (c *Content) at(pinned string) (m made, bytes int) {
	m, ok := c.known(pinned)
	if ok {
		return m, 0
	}
	body, version, err := c.Convert.Body(c.Type, c.Body, pinned)
	m = made{from: pinned, to: pinned, body: body, failed: err != nil}
	if err == nil {
		m.from = min(version, pinned) // it was the newest on each date since
	}
	c.made = append(c.made, m)
	return m, len(c.Body)
}
