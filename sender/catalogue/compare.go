package catalogue

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/surehook/surehook/sender"
)

// Change is a difference between two states of a catalogue, as its customers see it.
type Change struct {
	Type string `json:"type"`

	// Version is the version of the older state that was changed, by its date; "" if it has
	// none, or if the change is not about a version.
	Version string `json:"version,omitempty"`

	// Breaks tells that customers who get that version may have to change their code.
	Breaks bool `json:"breaks"`

	// From and Until are the dates of the subscriptions that are concerned: those that are
	// pinned to From or a later date, and before Until. From is "" for all from the beginning,
	// Until "" for all that come.
	From  string `json:"from,omitempty"`
	Until string `json:"until,omitempty"`

	// Path leads to what was changed in the data, as /total/amount; [] is each item of a list.
	Path string `json:"path,omitempty"`

	// The change, in words.
	What string `json:"what"`
}

// String is the change as a line.
func (c Change) String() string {
	var b strings.Builder
	b.WriteString(c.Type)
	if c.Version != "" {
		b.WriteString(", version " + c.Version)
	}
	if c.Path != "" {
		b.WriteString(", " + c.Path)
	}
	b.WriteString(": " + c.What)
	return b.String()
}

// Concerns tells whether a subscription gets what was changed.
func (c *Change) Concerns(s *sender.Subscription) bool {
	pinned := s.Settings.PayloadVersion
	return pinned >= c.From && (c.Until == "" || pinned < c.Until) &&
		slices.ContainsFunc(s.EventTypes, func(asked string) bool { return sender.TypeMatches(asked, c.Type) })
}

// Compare tells what has changed from one state of a catalogue to another: see Read. A
// version that was published is not to change: customers are pinned to it. Texts, examples
// and further properties may differ without harm, since customers need not look at them.
//
// It knows the usual keywords of JSON Schema: type, properties, required, items, enum, const,
// references within the schema. Any other that is taken away or changed counts as breaking,
// and so does one that is not only a limit, if it is new. It compares no converters: New does,
// by the examples.
func Compare(before, after []Type) (changes []Change) {
	newest := ""
	for i := range before {
		newest = max(newest, before[i].Newest().Since)
	}
	named := func(types []Type, name string) *Type {
		if i := slices.IndexFunc(types, func(t Type) bool { return t.Name == name }); i >= 0 {
			return &types[i]
		}
		return nil
	}
	for i := range before {
		was := &before[i]
		changes = append(changes, was.compare(named(after, was.Name), newest)...)
	}
	for i := range after {
		if named(before, after[i].Name) == nil {
			changes = append(changes, Change{Type: after[i].Name, What: "the type is new"})
		}
	}
	slices.SortStableFunc(changes, func(x, y Change) int {
		return cmp.Or(cmp.Compare(x.Type, y.Type), cmp.Compare(x.Version, y.Version), cmp.Compare(x.Path, y.Path))
	})
	return changes
}

// compare compares a type with what it has become. newest is the newest date of the whole
// older state, to which subscriptions are pinned.
func (t *Type) compare(now *Type, newest string) (changes []Change) {
	if now == nil {
		return []Change{{Type: t.Name, Breaks: true, What: "the type is gone"}}
	}
	add := func(breaks bool, format string, args ...any) {
		changes = append(changes, Change{Type: t.Name, Breaks: breaks, What: fmt.Sprintf(format, args...)})
	}
	if t.Kind != now.Kind {
		add(true, "its kind was %s, and is %s", t.Kind, now.Kind)
	}
	if t.Object != now.Object {
		add(true, "its objects were of the type %s, and are of the type %s", t.Object, now.Object)
	}
	if t.Deprecated == "" && now.Deprecated != "" {
		add(false, "it is deprecated now: %s", now.Deprecated)
	}
	for i := range t.Versions {
		changes = append(changes, t.compareVersion(i, now)...)
	}
	for i := range now.Versions {
		v := &now.Versions[i]
		if slices.ContainsFunc(t.Versions, func(w Version) bool { return w.Since == v.Since }) {
			continue
		}
		c := Change{Type: t.Name, Version: v.Since, What: "the version is new"}
		if v.Since <= newest {
			c.Breaks, c.From = true, v.Since
			if i == 0 {
				c.From = ""
			}
			if i+1 < len(now.Versions) {
				c.Until = now.Versions[i+1].Since
			}
			c.What = fmt.Sprintf("the version is new, and not newer than %s, to which customers are pinned already: give it a later date", newest)
		}
		changes = append(changes, c)
	}
	return changes
}

// compareVersion compares a version with what those get now that are pinned to it.
func (t *Type) compareVersion(i int, now *Type) (changes []Change) {
	v := &t.Versions[i]
	at := Change{Type: t.Name, Version: v.Since, Breaks: true, From: v.Since}
	if i == 0 {
		at.From = ""
	}
	if i+1 < len(t.Versions) {
		at.Until = t.Versions[i+1].Since
	}
	same := slices.IndexFunc(now.Versions, func(w Version) bool { return w.Since == v.Since })
	if same < 0 {
		at.What = fmt.Sprintf("the version is gone: they get version %q", now.At(at.From).Since)
		return []Change{at}
	}
	c := comparison{at: at, settled: map[pair]bool{}}
	c.values(v.Schema, now.Versions[same].Schema)
	return c.changes
}

// values compares two schemas; nil is one that says nothing.
func (c *comparison) values(before, after json.RawMessage) {
	read := func(schema json.RawMessage) any {
		if v, err := decode(schema); schema != nil && err == nil {
			return v
		}
		return true
	}
	c.before, c.after = read(before), read(after)
	c.schema("", c.before, c.after)
}

// Lister lists subscriptions. A *history.History is one.
type Lister interface {
	Subscriptions(ctx context.Context, q sender.SubscriptionQuery) ([]sender.Subscription, string, error)
}

// Broken is a live subscription with the changes that break it.
type Broken struct {
	Subscription sender.Subscription
	Changes      []Change
}

// FindBroken lists the subscriptions that are not deleted and that some of the changes break.
// It reads all subscriptions, page by page. Implicit ones are not among them: they ask for no
// type. A version that is new breaks no filter: filters decide by the version that their
// subscription gets.
func FindBroken(ctx context.Context, list Lister, changes []Change) (all []Broken, err error) {
	q := sender.SubscriptionQuery{Limit: 200}
	for {
		page, next, err := list.Subscriptions(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, s := range page {
			var hits []Change
			for _, c := range changes {
				if c.Breaks && c.Concerns(&s) {
					hits = append(hits, c)
				}
			}
			if len(hits) > 0 {
				all = append(all, Broken{s, hits})
			}
		}
		if next == "" {
			return all, nil
		}
		q.Cursor = next
	}
}
