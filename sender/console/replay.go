package console

import (
	"context"
	"crypto/rand"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/look"
	"github.com/surehook/surehook/sender/internal/look/charts"
	"github.com/surehook/surehook/sender/replay"
)

type replaysView struct {
	List  []replayRow
	Pages look.Pages
}

type replayRow struct {
	replay.Replay
	State look.State
}

// Title says what a replay sends.
func (r *replayRow) Title() string {
	one, many := "dead letter", "dead letters"
	switch r.Filter.Status {
	case sender.StatusDelivered:
		one, many = "delivered one", "delivered ones"
	case sender.StatusSuperseded:
		one, many = "superseded one", "superseded ones"
	}
	what := countOf(int(r.Matched), one, many)
	switch {
	case r.More && r.Matched == 0:
		what = many
	case r.More:
		what = "at least " + what
	}
	var by []string
	if r.Filter.EventType != "" {
		by = append(by, look.Plain(r.Filter.EventType))
	}
	if r.Filter.ErrorClass != "" {
		by = append(by, string(r.Filter.ErrorClass))
	}
	if r.Filter.StatusCode != 0 {
		by = append(by, strconv.Itoa(r.Filter.StatusCode))
	}
	if n := len(r.Filter.Groups); n > 0 {
		by = append(by, countOf(n, "group", "groups"))
	}
	if len(by) > 0 {
		what += ", " + strings.Join(by, ", ")
	}
	return what
}

// Left is how many are still to be sent.
func (r *replayRow) Left() int64 { return max(0, r.Matched-r.Admitted-r.Skipped) }

// Share is how much of it is done, from 0 to 1, unless there is More.
func (r *replayRow) Share() float64 {
	if r.Matched == 0 {
		return 1
	}
	return float64(r.Admitted+r.Skipped) / float64(r.Matched)
}

// Remaining is how long the rest takes at its rate; 0: not known.
func (r *replayRow) Remaining() time.Duration {
	if r.Rate == 0 || r.More || r.Status != replay.Running {
		return 0
	}
	return time.Duration(float64(r.Left()) / r.Rate * float64(time.Second))
}

// Live tells whether it is not at its end.
func (r *replayRow) Live() bool { return r.Status == replay.Running || r.Status == replay.Paused }

// Mix is its progress as a bar.
func (r *replayRow) Mix() any {
	return charts.Mix([]charts.Part{{Value: float64(r.Admitted), Class: "f-accent"}, {Value: float64(r.Skipped), Class: "f-idle"}, {Value: float64(r.Left()), Class: "f-quiet"}},
		look.Count(r.Admitted)+" sent again, "+look.Count(r.Skipped)+" skipped, "+look.Count(r.Left())+" to come")
}

func rowOf(r replay.Replay) replayRow { return replayRow{r, look.Replay(r.Status)} }

func (c *Console) replays(ctx context.Context, r *http.Request) (view, error) {
	q := r.URL.Query()
	list, err := c.Replays.List(ctx, replay.Query{After: q.Get("after"), Limit: pageSize + 1})
	if err != nil {
		return view{}, err
	}
	next := ""
	if len(list) > pageSize {
		list = list[:pageSize]
		next = list[pageSize-1].ID
	}
	v := replaysView{}
	page := view{title: "Replays", nav: "replays", data: &v}
	for _, one := range list {
		v.List = append(v.List, rowOf(one))
		page.owners = append(page.owners, one.Filter.Subscriber)
	}
	v.Pages = pagesOf(q, "after", next, countOf(len(list), "replay", "replays")+" on this page")
	return page, nil
}

type replayView struct {
	replayRow
	URL    string // of the one subscription that it is about; "": it is about more
	Groups []chosenGroup
}

func (c *Console) replay(ctx context.Context, r *http.Request) (view, error) {
	rep, err := c.Replays.Get(ctx, r.PathValue("id"))
	if err != nil {
		return view{}, err
	}
	v := replayView{replayRow: rowOf(rep)}
	urls := map[string]string{}
	if v.URL, err = c.urlOf(ctx, urls, rep.Filter.Subscription); err != nil {
		return view{}, err
	}
	if v.Groups, err = c.chosen(ctx, urls, rep.Filter.Groups); err != nil {
		return view{}, err
	}
	return view{title: v.Title(), nav: "replays", crumbs: []crumb{{"Replays", "replays"}}, owners: []string{rep.Filter.Subscriber}, data: &v}, nil
}

type newReplayView struct {
	Filter  filter
	Groups  []chosenGroup
	Classes []sender.Class
	// Preview counts what a replay would send; nil: the form was not sent yet.
	Preview *replay.Preview
	Shares  []share
	At      time.Time // when it was counted
	Once    string    // drawn for this page: by it, a form that is sent twice begins one replay
	Failing int64     // of endpoints that fail still, or whose deliveries are held
}

// share is a subscription's part of what a replay would send.
type share struct {
	replay.Share
	Row  subscriptionRow
	Gone bool // it is deleted
}

// newReplay shows the form, and the preview once the form was sent.
func (c *Console) newReplay(ctx context.Context, r *http.Request) (view, error) {
	q := r.URL.Query()
	f, err := filterOf(q)
	if err != nil {
		return view{}, err
	}
	if f.Status == "" {
		f.Status = string(sender.StatusDeadLettered)
	}
	v := newReplayView{Filter: f, Classes: classes, At: c.cfg.Now(), Once: rand.Text()}
	if v.Groups, err = c.chosen(ctx, map[string]string{}, f.groups); err != nil {
		return view{}, err
	}
	page := view{title: "New replay", nav: "replays", crumbs: []crumb{{"Replays", "replays"}}, static: true, data: &v}
	if q.Get("preview") == "" {
		return page, nil
	}
	var p replay.Preview
	err = c.counted(ctx, func() (err error) {
		p, err = c.Replays.PreviewSome(ctx, f.replay())
		return err
	})
	if err != nil {
		return view{}, err
	}
	v.Preview = &p
	for _, s := range p.Subscriptions {
		one, err := c.share(ctx, s)
		if err != nil {
			return view{}, err
		}
		if !one.Gone && one.fails() {
			v.Failing += s.Count
		}
		v.Shares = append(v.Shares, one)
		page.owners = append(page.owners, one.Row.Subscriber)
	}
	return page, nil
}

// countsAtOnce is how many pages have counted at a time what a replay sends, because that reads
// thousands of rows.
const countsAtOnce = 2

// counted calls count, and waits before while others count.
func (c *Console) counted(ctx context.Context, count func() error) error {
	select {
	case c.counting <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.counting }()
	return count()
}

// fails tells whether what is sent to it now will most likely not arrive.
func (s *share) fails() bool { return s.Row.State.Tone == "bad" }

func (c *Console) share(ctx context.Context, s replay.Share) (share, error) {
	sub, err := c.Registry.Subscription(ctx, s.Subscription)
	if isGone(err) {
		return share{Share: s, Gone: true}, nil
	}
	return share{Share: s, Row: c.row(sub)}, err
}

func (f *filter) replay() replay.Filter {
	return replay.Filter{
		Status: sender.Status(f.Status), Subscription: f.Subscription, Subscriber: f.Subscriber, EventType: f.Type,
		Since: f.since, Until: f.until, ErrorClass: sender.Class(f.Class), StatusCode: f.code, Groups: f.groups,
	}
}

func (c *Console) createReplay(ctx context.Context, r *http.Request) (string, string, error) {
	f, err := filterOf(r.PostForm)
	if err != nil {
		return "", "", err
	}
	n := replay.Request{Filter: f.replay(), Force: r.PostForm.Get("force") != "", By: whoOf(r), Reason: r.PostForm.Get("reason")}
	if r.PostForm.Get("once") != "" {
		n.ID = newid.Of("rpl_", r.PostForm.Encode())
	}
	if text := r.PostForm.Get("rate"); text != "" {
		if n.Rate, err = strconv.ParseFloat(text, 64); err != nil {
			return "", "", badInput("rate: " + strconv.Quote(text) + " is no number: give deliveries a second, or nothing for as fast as there is room")
		}
	}
	var made replay.Replay
	err = c.counted(ctx, func() error {
		made, err = c.Replays.Create(ctx, n)
		return err
	})
	return "replays/" + made.ID, "replaying", err
}

// turnReplay pauses, continues or cancels a replay.
func (c *Console) turnReplay(turn func(ctx context.Context, id string) (replay.Replay, error), said string) func(context.Context, *http.Request) (string, string, error) {
	return func(ctx context.Context, r *http.Request) (string, string, error) {
		id := r.PathValue("id")
		_, err := turn(ctx, id)
		return "replays/" + id, said, err
	}
}
