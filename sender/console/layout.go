package console

import (
	"context"
	"html/template"
	"net/http"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/look"
	"github.com/surehook/surehook/sender/replay"
)

// layout has the data of every page.
type layout struct {
	Name    string // of the console
	Place   string
	Title   string // of the page
	Nav     string // the part of the console that it belongs to
	Crumbs  []crumb
	Base    string // the way back to the console's root, so that all links are relative
	Who     string
	SignOut string
	Said    string // what was done just now
	Query   string // what was searched for
	Now     time.Time
	Refresh int // seconds; 0: never
	View    any

	Types  []string       // of the catalogue
	Parts  []part         // of the navigation, in groups
	counts history.Counts // of the navigation
	names  map[string]string
}

// part is a link of the navigation.
type part struct {
	ID, Link, Icon, Title string
	Count                 int64
	Least                 bool   // there may be more
	Tone                  string // of the count
	Counts                string // what is counted, for those who cannot see the rest
	Apart                 bool   // a group begins with it
}

func (c *Console) layout(r *http.Request, v view) *layout {
	l := &layout{
		Name: c.cfg.Name, Place: c.cfg.Place, Title: v.title, Nav: v.nav, Crumbs: v.crumbs, Base: base(r), Who: whoOf(r), SignOut: c.cfg.SignOut,
		Said: said[r.URL.Query().Get("said")], Now: c.cfg.Now(), View: v.data, Types: c.typeNames(),
	}
	if !v.static && c.cfg.Refresh > 0 {
		l.Refresh = int(max(1, c.cfg.Refresh.Seconds()))
	}
	l.Parts = []part{
		{ID: "overview", Icon: "overview", Title: "Overview"},
		{ID: "subscriptions", Link: "subscriptions", Icon: "subs", Title: "Subscriptions"},
		{ID: "deliveries", Link: "deliveries", Icon: "send", Title: "Deliveries"},
		{ID: "dead letters", Link: "dead-letters", Icon: "tray", Title: "Dead letters"},
		{ID: "replays", Link: "replays", Icon: "replay", Title: "Replays"},
		{ID: "events", Link: "events", Icon: "event", Title: "Events", Apart: true},
	}
	if c.Customers != nil {
		l.Parts = append(l.Parts, part{ID: "customers", Link: "customers", Icon: "people", Title: "Customers"})
	}
	if c.Jobs != nil {
		l.Parts = append(l.Parts, part{ID: "jobs", Link: "jobs", Icon: "job", Title: "Jobs"})
	}
	l.Parts = append(l.Parts, part{ID: "notices", Link: "notices", Icon: "bell", Title: "Notices"})
	return l
}

// runningLooked bounds how many of the newest replays are looked at for running ones.
const runningLooked = 10

// surround reads what stands around every page: the navigation's counts and names.
func (c *Console) surround(ctx context.Context, l *layout, v view) error {
	var err error
	if v.counts != nil {
		l.counts = *v.counts
	} else if l.counts, err = c.History.Counts(ctx); err != nil {
		return err
	}
	newest, err := c.Replays.List(ctx, replay.Query{Limit: runningLooked})
	if err != nil {
		return err
	}
	var running int64
	for _, r := range newest {
		if r.Status == replay.Running {
			running++
		}
	}
	for i := range l.Parts {
		p := &l.Parts[i]
		switch p.ID {
		case "subscriptions":
			p.Count, p.Tone, p.Counts = l.counts.Subscriptions[sender.SubscriptionDisabled], "bad", "disabled"
		case "dead letters":
			p.Count = l.counts.DeadLettered
		case "replays":
			p.Count, p.Tone, p.Counts = running, "live", "running"
		case "notices":
			p.Count, p.Counts, p.Least = l.counts.Notices, "open", l.counts.Notices == history.MaxCountedNotices
		}
	}
	l.names = c.namesOf(ctx, v.owners)
	return nil
}

// namesOf asks the program for names. Without them ids are shown: an error is logged, and
// keeps no page from being shown.
func (c *Console) namesOf(ctx context.Context, ids []string) map[string]string {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == "" || id == sender.Operator })
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if c.Customers == nil || len(ids) == 0 {
		return nil
	}
	names, err := c.Customers.NameOf(ctx, ids)
	if err != nil && !left(ctx) {
		c.cfg.Logger.ErrorContext(ctx, "console: the customers' names are not known", "error", err)
	}
	return names
}

// NameOf is a subscriber's name, or its id if the program gives none. It stands in sentences: a
// name that is written from right to left must not turn round what follows it.
func (l *layout) NameOf(id string) template.HTML {
	if id == sender.Operator {
		return "the operator"
	}
	name := l.names[id]
	if name == "" {
		name = look.Short(id)
	}
	return template.HTML("<bdi>" + look.Escape(name) + "</bdi>") //nolint:gosec // escaped
}
