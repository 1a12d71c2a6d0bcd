package console

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/look"
)

// noticeGroup has notices of one kind about one thing, the newest first.
type noticeGroup struct {
	sender.Notice // the newest
	State         look.State
	URL           string // of the subscription; "": it is not known
	IDs           []string
	Unread        []string
	Oldest        time.Time
}

// Count is how many notices it has.
func (g *noticeGroup) Count() int { return len(g.IDs) }

// Title says in a few words what the notices are about.
func (g *noticeGroup) Title() string {
	at := "an endpoint"
	if g.URL != "" {
		at = look.Host(g.URL)
	} else if g.Subscription != "" {
		at = look.Short(g.Subscription)
	}
	switch g.Kind {
	case sender.NoticeDeadLettered:
		return look.Plural(g.Count(), "dead letter") + " at " + at
	case sender.NoticeFailing:
		return at + " is failing"
	case sender.NoticeDisabled:
		return at + " was disabled"
	case sender.NoticeNetwork:
		return "Our own network seems to be down"
	case sender.NoticeProxy:
		return "A proxy is failing"
	case sender.NoticeReplayFinished:
		return "A replay has finished"
	}
	return look.Plain(string(g.Kind))
}

// Link leads to what the notices are about; "": to nothing.
func (g *noticeGroup) Link() string {
	switch {
	case g.Kind == sender.NoticeDeadLettered && g.Count() > 1 && g.Subscription != "":
		return "deliveries?status=dead_lettered&subscription=" + g.Subscription
	case g.Delivery != "":
		return "deliveries/" + g.Delivery
	case g.Replay != "":
		return "replays/" + g.Replay
	case g.Subscription != "":
		return "subscriptions/" + g.Subscription
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

// groups puts notices together that are of one kind and about one thing: what is still
// unread apart from what is not. It keeps their order.
func (c *Console) groups(ctx context.Context, notices []sender.Notice) ([]noticeGroup, error) {
	type about struct {
		kind          sender.NoticeKind
		addressee, of string
		read          bool
	}
	at := map[about]int{}
	var list []noticeGroup
	urls := map[string]string{}
	for _, n := range notices {
		key := about{n.Kind, n.Subscriber, n.Subscription + n.Replay, !n.AcknowledgedAt.IsZero()}
		i, known := at[key]
		if !known {
			i = len(list)
			at[key] = i
			url, err := c.urlOf(ctx, urls, n.Subscription)
			if err != nil {
				return nil, err
			}
			list = append(list, noticeGroup{Notice: n, State: noticeStates[n.Kind], URL: url})
		}
		g := &list[i]
		g.IDs, g.Oldest = append(g.IDs, n.ID), n.CreatedAt
		if n.AcknowledgedAt.IsZero() {
			g.Unread = append(g.Unread, n.ID)
		}
	}
	return list, nil
}

// urlsLooked bounds how many subscriptions a page looks up for their URLs.
const urlsLooked = 25

// urlOf is a subscription's URL; "" if it is deleted, or if known has too many already.
func (c *Console) urlOf(ctx context.Context, known map[string]string, id string) (string, error) {
	if url, ok := known[id]; ok || id == "" || len(known) >= urlsLooked {
		return url, nil
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
	All    bool // those that were acknowledged, too
	Chips  []chip
	Groups []noticeGroup
	Unread []string
	Pages  look.Pages
	More   bool
}

func (c *Console) notices(ctx context.Context, r *http.Request) (view, error) {
	q := r.URL.Query()
	v := noticesView{Kind: q.Get("kind"), All: q.Get("all") != ""}
	list, next, err := c.History.Notices(ctx, history.NoticeQuery{Kind: sender.NoticeKind(v.Kind), Unread: !v.All, Cursor: q.Get("cursor"), Limit: maxLimit})
	if err != nil {
		return view{}, err
	}
	if v.Groups, err = c.groups(ctx, list); err != nil {
		return view{}, err
	}
	v.Chips = []chip{{Link: "?", Title: "Open", Current: v.Kind == "" && !v.All}}
	for _, k := range noticeKinds {
		v.Chips = append(v.Chips, chip{Link: "?kind=" + string(k), Title: noticeStates[k].Word, State: noticeStates[k], Current: v.Kind == string(k)})
	}
	v.Chips = append(v.Chips, chip{Link: "?all=1", Title: "Acknowledged, too", Current: v.All})
	v.More, v.Pages = next != "", pagesOf(q, "cursor", next, look.Plural(len(list), "notice")+" on this page")
	page := view{title: "Notices", nav: "notices", data: &v}
	for i := range v.Groups {
		v.Unread = append(v.Unread, v.Groups[i].Unread...)
		page.owners = append(page.owners, v.Groups[i].Subscriber)
	}
	return page, nil
}

func (c *Console) acknowledge(ctx context.Context, r *http.Request) (string, string, error) {
	_, err := c.History.Acknowledge(ctx, r.PathValue("id"), "")
	return "notices", "acknowledged", err
}

// acknowledgeSeveral acknowledges the notices of a group. One that is gone meanwhile
// needs nobody's attention.
func (c *Console) acknowledgeSeveral(ctx context.Context, r *http.Request) (string, string, error) {
	ids, err := several(r.PostForm["id"], maxLimit)
	if err != nil {
		return "", "", err
	}
	for _, id := range ids {
		if _, err := c.History.Acknowledge(ctx, id, ""); err != nil && !errors.Is(err, sender.ErrNotFound) {
			return "", "", err
		}
	}
	return "notices", "acknowledged", nil
}

// several are the ids of a form that acts on more than one thing.
func several(ids []string, most int) ([]string, error) {
	if len(ids) == 0 {
		return nil, badInput("id: none is chosen: choose one or more")
	}
	if len(ids) > most {
		return nil, badInput("id: " + strconv.Itoa(len(ids)) + " are chosen: choose at most " + strconv.Itoa(most))
	}
	return ids, nil
}
