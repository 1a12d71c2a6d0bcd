package console

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/look"
	"github.com/surehook/surehook/sender/replay"
)

// deadLettersView are the dead letters in groups: a replay sends one or more of them again.
type deadLettersView struct {
	Filter filter
	Groups []deadGroup
	Hidden int   // how many groups have no place on the page
	Some   bool  // not all dead letters were looked at
	Whole  int64 // all that there are
}

// deadGroup are the dead letters of a subscription whose last attempts ended in one way.
type deadGroup struct {
	history.DeadLetterGroup
	Row  subscriptionRow
	Gone bool // the subscription is deleted
}

// groupsShown is how many groups a page shows, and a replay takes.
const groupsShown = 100

// Answer is how the last attempts ended.
func (g *deadGroup) Answer() look.Label { return look.Answer(g.StatusCode, g.Class) }

// Value is what a form sends of the group.
func (g *deadGroup) Value() string {
	return groupText(replay.Group{Subscription: g.Subscription, ErrorClass: g.Class, StatusCode: g.StatusCode})
}

// Each leads to the dead letters of the group, one by one.
func (g *deadGroup) Each() string {
	v := url.Values{"status": {string(sender.StatusDeadLettered)}, "subscription": {g.Subscription}}
	if g.Class != "" {
		v.Set("class", string(g.Class))
	}
	if g.StatusCode != 0 {
		v.Set("code", strconv.Itoa(g.StatusCode))
	}
	return "deliveries?" + v.Encode()
}

// groupText is a group as a form sends it.
func groupText(g replay.Group) string {
	return string(g.ErrorClass) + "," + strconv.Itoa(g.StatusCode) + "," + g.Subscription
}

// groupsOf reads what forms send of groups.
func groupsOf(texts []string) (groups []replay.Group, err error) {
	for _, text := range texts {
		parts := strings.SplitN(text, ",", 3)
		var code int
		if len(parts) == 3 {
			code, err = strconv.Atoi(parts[1])
		}
		if len(parts) != 3 || err != nil {
			return nil, badInput("group: " + strconv.Quote(text) + " is not one: choose groups on the page of dead letters")
		}
		groups = append(groups, replay.Group{ErrorClass: sender.Class(parts[0]), StatusCode: code, Subscription: parts[2]})
	}
	return groups, nil
}

// chosenGroup is a group that a replay sends.
type chosenGroup struct {
	replay.Group
	URL string // of the subscription; "": it is not known
}

// Answer is how the last attempts ended.
func (g *chosenGroup) Answer() look.Label { return look.Answer(g.StatusCode, g.ErrorClass) }

// Value is what a form sends of the group.
func (g *chosenGroup) Value() string { return groupText(g.Group) }

func (c *Console) chosen(ctx context.Context, urls map[string]string, groups []replay.Group) (list []chosenGroup, err error) {
	for _, g := range groups {
		at, err := c.urlOf(ctx, urls, g.Subscription)
		if err != nil {
			return nil, err
		}
		list = append(list, chosenGroup{g, at})
	}
	return list, nil
}

func (c *Console) deadLetters(ctx context.Context, r *http.Request) (view, error) {
	f, err := filterOf(r.URL.Query())
	if err != nil {
		return view{}, err
	}
	counts, err := c.History.Counts(ctx)
	if err != nil {
		return view{}, err
	}
	all, err := c.History.DeadLetterGroups(ctx, history.DeadLetterQuery{Subscription: f.Subscription, Subscriber: f.Subscriber})
	if err != nil {
		return view{}, err
	}
	shown := all.Groups[:min(len(all.Groups), groupsShown)]
	v := deadLettersView{Filter: f, Hidden: len(all.Groups) - len(shown), Some: all.More, Whole: counts.DeadLettered}
	page := view{title: "Dead letters", nav: "dead letters", owners: []string{f.Subscriber}, data: &v, counts: &counts}
	known := map[string]*deadGroup{}
	for _, g := range shown {
		one := deadGroup{DeadLetterGroup: g}
		if same := known[g.Subscription]; same != nil {
			one.Row, one.Gone = same.Row, same.Gone
		} else if one.Row, one.Gone, err = c.rowOf(ctx, g.Subscription); err != nil {
			return view{}, err
		}
		known[g.Subscription] = &one
		v.Groups = append(v.Groups, one)
		page.owners = append(page.owners, g.Subscriber)
	}
	return page, nil
}

// rowOf is a subscription without its figures. gone: it is deleted.
func (c *Console) rowOf(ctx context.Context, id string) (row subscriptionRow, gone bool, err error) {
	s, err := c.Registry.Subscription(ctx, id)
	if isGone(err) {
		return row, true, nil
	}
	return c.row(s), false, err
}
