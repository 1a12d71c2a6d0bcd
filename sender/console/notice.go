package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/look"
)

// noticeGroup has open notices of one kind about one subscription and for one addressee.
type noticeGroup struct {
	history.NoticeGroup
	State look.State
	URL   string // of the subscription; "": it is not known
	Least bool   // it may have more notices than Count
}

// Many is how many notices it has.
func (g *noticeGroup) Many() string {
	if g.Least {
		return look.Count(g.Count) + "+"
	}
	return look.Count(g.Count)
}

// Title says in a few words what the notices are about.
func (g *noticeGroup) Title() string {
	dead := look.Plural(g.Count, "dead letter")
	if g.Least {
		dead = g.Many() + " dead letters"
	}
	return noticeTitle(g.Kind, dead, g.Subscription, g.URL)
}

func noticeTitle(kind sender.NoticeKind, dead, subscription, where string) string {
	at := "an endpoint"
	if where != "" {
		at = look.Host(where)
	} else if subscription != "" {
		at = look.Short(subscription)
	}
	switch kind {
	case sender.NoticeDeadLettered:
		return dead + " at " + at
	case sender.NoticeFailing:
		return at + " is failing"
	case sender.NoticeDisabled:
		return at + " was disabled"
	case sender.NoticeNetwork:
		return "Our own network or machine fails"
	case sender.NoticeProxy:
		return "A proxy is failing"
	case sender.NoticeReplayFinished:
		return "A replay has finished"
	}
	return look.Plain(string(kind))
}

// Link leads to what the notices are about; "": to nothing.
func (g *noticeGroup) Link() string {
	switch {
	case g.Kind == sender.NoticeReplayFinished:
		return "replays"
	case g.Subscription == "":
		return ""
	case g.Kind == sender.NoticeDeadLettered:
		return "dead-letters?" + url.Values{"subscription": {g.Subscription}}.Encode()
	}
	return "subscriptions/" + url.PathEscape(g.Subscription)
}

// Value is what a form sends to acknowledge the group: those that were made up to Last.
func (g *noticeGroup) Value() string {
	return url.Values{"kind": {string(g.Kind)}, "subscriber": {g.Subscriber}, "subscription": {g.Subscription}, "last": {g.Last.UTC().Format(time.RFC3339Nano)}}.Encode()
}

func noticeGroupOf(text string) (g history.NoticeGroup, err error) {
	v, err := url.ParseQuery(text)
	if err == nil {
		g = history.NoticeGroup{Kind: sender.NoticeKind(v.Get("kind")), Subscriber: v.Get("subscriber"), Subscription: v.Get("subscription")}
		g.Last, err = time.Parse(time.RFC3339Nano, v.Get("last"))
	}
	if err != nil {
		return g, badInput("group: " + strconv.Quote(text) + " is not one: send the page's own form")
	}
	return g, nil
}

// noticeRow is a single notice in a list.
type noticeRow struct {
	sender.Notice
	State look.State
	URL   string // of the subscription; "": it is not known
	Gone  bool   // the replay that it is about is not kept any more
}

// Title says in a few words what it is about.
func (n *noticeRow) Title() string {
	return noticeTitle(n.Kind, "1 dead letter", n.Subscription, n.URL)
}

// Link leads to what it is about; "": to nothing.
func (n *noticeRow) Link() string {
	switch {
	case n.Delivery != "":
		return "deliveries/" + n.Delivery
	case n.Replay != "" && !n.Gone:
		return "replays/" + n.Replay
	case n.Subscription != "":
		return "subscriptions/" + n.Subscription
	}
	return ""
}

var noticeStates = map[sender.NoticeKind]look.State{
	sender.NoticeDeadLettered: {Icon: "dead", Tone: "bad", Word: "Dead letters"}, sender.NoticeFailing: {Icon: "warn", Tone: "warn", Word: "Failing"},
	sender.NoticeDisabled: {Icon: "off", Tone: "bad", Word: "Disabled"}, sender.NoticeNetwork: {Icon: "warn", Tone: "bad", Word: "Our network"},
	sender.NoticeProxy: {Icon: "warn", Tone: "bad", Word: "Proxies"}, sender.NoticeReplayFinished: {Icon: "replay", Tone: "ok", Word: "Replays"},
}

// noticeKinds are all kinds, the worst first.
var noticeKinds = []sender.NoticeKind{
	sender.NoticeNetwork, sender.NoticeProxy, sender.NoticeDisabled, sender.NoticeFailing, sender.NoticeDeadLettered, sender.NoticeReplayFinished,
}

// openNotices are the groups of notices that nobody has acknowledged: of one kind, or all.
// more tells that there may be others.
func (c *Console) openNotices(ctx context.Context, kind string, most int) (list []noticeGroup, more bool, err error) {
	all, err := c.History.NoticeGroups(ctx, "")
	if err != nil {
		return nil, false, err
	}
	groups := all.Groups
	if kind != "" {
		groups = slices.DeleteFunc(groups, func(g history.NoticeGroup) bool { return string(g.Kind) != kind })
	}
	list, err = c.noticeGroups(ctx, groups[:min(len(groups), most)], all.More)
	return list, all.More || len(groups) > most, err
}

// newestNotices are the groups of the newest notices that nobody has acknowledged: fewer are
// read than openNotices reads.
func (c *Console) newestNotices(ctx context.Context, q history.NoticeQuery, most int) ([]noticeGroup, error) {
	q.Unread, q.Limit = true, maxLimit
	list, next, err := c.History.Notices(ctx, q)
	if err != nil {
		return nil, err
	}
	var all history.NoticeGroups
	for i := range list {
		all.Add(&list[i])
	}
	return c.noticeGroups(ctx, all.Groups[:min(len(all.Groups), most)], next != "")
}

func (c *Console) noticeGroups(ctx context.Context, groups []history.NoticeGroup, least bool) (list []noticeGroup, err error) {
	urls := map[string]string{}
	for _, g := range groups {
		at, err := c.urlOf(ctx, urls, g.Subscription)
		if err != nil {
			return nil, err
		}
		list = append(list, noticeGroup{g, noticeStates[g.Kind], at, least})
	}
	return list, nil
}

// urlsLooked bounds how many subscriptions a page looks up for their URLs.
const urlsLooked = 100

// urlOf is a subscription's URL; "" if it is deleted, or if known has too many already.
func (c *Console) urlOf(ctx context.Context, known map[string]string, id string) (string, error) {
	if at, ok := known[id]; ok || id == "" || len(known) >= urlsLooked {
		return at, nil
	}
	s, err := c.Registry.Subscription(ctx, id)
	if err != nil && !errors.Is(err, sender.ErrNotFound) {
		return "", err
	}
	known[id] = s.URL
	return s.URL, nil
}

type noticesView struct {
	Kind   string
	All    bool // each by itself, those that were acknowledged, too
	Chips  []chip
	Groups []noticeGroup
	List   []noticeRow
	Pages  look.Pages
	More   bool
}

// noticesShown bounds the groups of a page, whose form sends all of them. With ids as long as
// they can be, one has about 400 bytes, and maxForm bounds the form.
const noticesShown = 150

func (c *Console) notices(ctx context.Context, r *http.Request) (view, error) {
	q := r.URL.Query()
	v := noticesView{Kind: q.Get("kind"), All: q.Get("all") != ""}
	v.Chips = []chip{{Link: "?", Title: "Open", Current: v.Kind == "" && !v.All}}
	for _, k := range noticeKinds {
		v.Chips = append(v.Chips, chip{Link: "?kind=" + string(k), Title: noticeStates[k].Word, State: noticeStates[k], Current: v.Kind == string(k) && !v.All})
	}
	v.Chips = append(v.Chips, chip{Link: "?all=1", Title: "Acknowledged, too", Current: v.All})
	page := view{title: "Notices", nav: "notices", data: &v}
	if v.All {
		return page, c.allNotices(ctx, q, &v, &page)
	}
	var err error
	v.Groups, v.More, err = c.openNotices(ctx, v.Kind, noticesShown)
	for i := range v.Groups {
		page.owners = append(page.owners, v.Groups[i].Subscriber)
	}
	return page, err
}

// allNotices reads a page of notices, each by itself.
func (c *Console) allNotices(ctx context.Context, q url.Values, v *noticesView, page *view) error {
	list, next, err := c.History.Notices(ctx, history.NoticeQuery{Kind: sender.NoticeKind(v.Kind), Cursor: q.Get("cursor"), Limit: pageSize})
	if err != nil {
		return err
	}
	urls := map[string]string{}
	for _, n := range list {
		at, err := c.urlOf(ctx, urls, n.Subscription)
		if err != nil {
			return err
		}
		row := noticeRow{Notice: n, State: noticeStates[n.Kind], URL: at}
		if n.Replay != "" {
			_, err := c.Replays.Get(ctx, n.Replay)
			if row.Gone = isGone(err); err != nil && !row.Gone {
				return err
			}
		}
		v.List = append(v.List, row)
		page.owners = append(page.owners, n.Subscriber)
	}
	v.More, v.Pages = next != "", pagesOf(q, "cursor", next, look.Plural(len(list), "notice")+" on this page")
	return nil
}

func (c *Console) acknowledge(ctx context.Context, r *http.Request) (string, string, error) {
	_, err := c.History.Acknowledge(ctx, r.PathValue("id"), "")
	return "notices", "acknowledged", err
}

// acknowledgeGroups acknowledges the notices of groups that a page has shown, and none that
// came since.
func (c *Console) acknowledgeGroups(ctx context.Context, r *http.Request) (string, string, error) {
	texts, err := several("group", r.PostForm["group"], maxLimit)
	if err != nil {
		return "", "", err
	}
	groups := make([]history.NoticeGroup, len(texts))
	for i, text := range texts {
		if groups[i], err = noticeGroupOf(text); err != nil {
			return "", "", err
		}
	}
	for i, g := range groups {
		if _, err := c.History.AcknowledgeGroup(ctx, g); err != nil {
			return "", "", partly{err, i > 0}
		}
	}
	return "notices", "acknowledged", nil
}

// several are the values of a form's field that names more than one thing.
func several(field string, values []string, most int) ([]string, error) {
	if len(values) == 0 {
		return nil, badInput(field + ": none is chosen: choose one or more")
	}
	if len(values) > most {
		return nil, badInput(field + ": " + strconv.Itoa(len(values)) + " are chosen: choose at most " + strconv.Itoa(most))
	}
	return values, nil
}
