package console

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/look"
	"github.com/surehook/surehook/sender/internal/look/charts"
)

// overview is the first page: how the sender as a whole is doing.
type overview struct {
	Span   span
	Spans  []span
	Counts history.Counts
	// Ours is how long the oldest delivery has been due that waits for the dispatchers, and
	// Theirs, that waits for a slow or failing endpoint; negative: none waits.
	Ours, Theirs time.Duration
	Whole        history.Rollup
	Tiles        tiles
	Charts       overviewCharts
	Failures     []failure
	Failed       int64
	Failing      []subscriptionRow
	Notices      []noticeGroup
	Active       int64 // subscriptions that are not deleted
}

// late is from when on the oldest due delivery says that something is wrong.
const late = time.Minute

// Disabled is how many subscriptions are.
func (o *overview) Disabled() int64 { return o.Counts.Subscriptions[sender.SubscriptionDisabled] }

// Slow is how many deliveries wait for slow or failing endpoints.
func (o *overview) Slow() int64 { return o.Counts.Lanes[sender.LaneProbation].Live }

// ManyNotices tells that more notices may be open than were counted.
func (o *overview) ManyNotices() bool { return o.Counts.Notices == history.MaxCountedNotices }

// Late tells whether deliveries wait for longer for us than they should.
func (o *overview) Late() bool { return o.Ours >= late }

type failure struct {
	Class sender.Class
	Count int64
	Share float64
}

// attention bounds each list of the first page.
const attention = 8

func (c *Console) overview(ctx context.Context, r *http.Request) (view, error) {
	counts, err := c.History.Counts(ctx)
	if err != nil {
		return view{}, err
	}
	if fresh, err := c.unused(ctx, &counts); err != nil || fresh != nil {
		return view{title: "First steps", nav: "overview", data: &overviewOr{First: fresh}, counts: &counts}, err
	}
	o := overview{Span: spanOf(r.URL.Query().Get("range"), day), Spans: spans, Counts: counts}
	for _, n := range counts.Subscriptions {
		o.Active += n
	}
	o.Ours, o.Theirs = -1, -1
	for lane := range counts.Lanes {
		if since := counts.Lanes[lane].OldestDue; !since.IsZero() {
			side := &o.Ours
			if sender.Lane(lane) == sender.LaneProbation { //nolint:gosec // there are three
				side = &o.Theirs
			}
			*side = max(*side, counts.At.Sub(since), 0)
		}
	}
	all, err := c.series(ctx, counts.At, o.Span)
	if err != nil {
		return view{}, err
	}
	o.Whole, o.Tiles, o.Charts = all.Whole, tilesOf(all), chartsOf(all)
	o.Failures, o.Failed = failuresOf(&all.Whole)
	trouble, _, err := c.troubled(ctx, sender.SubscriptionQuery{Implicit: true, Limit: attention})
	if err != nil {
		return view{}, err
	}
	if o.Failing, err = c.rows(ctx, trouble); err != nil {
		return view{}, err
	}
	slices.SortStableFunc(o.Failing, worstFirst)
	o.Failing = o.Failing[:min(len(o.Failing), attention)]
	if o.Notices, err = c.newestNotices(ctx, history.NoticeQuery{}, attention); err != nil {
		return view{}, err
	}
	v := view{title: "Overview", nav: "overview", data: &overviewOr{Overview: &o}, counts: &counts}
	for i := range o.Failing {
		v.owners = append(v.owners, o.Failing[i].Subscriber)
	}
	for i := range o.Notices {
		v.owners = append(v.owners, o.Notices[i].Subscriber)
	}
	return v, nil
}

// overviewOr has one of the two pages that are the first one.
type overviewOr struct {
	Overview *overview
	First    *firstSteps
}

// troubled returns the subscriptions of a query that are disabled, and those that fail. It
// returns up to the query's limit of each, those that have failed for longest first. whole
// tells that these are all.
func (c *Console) troubled(ctx context.Context, q sender.SubscriptionQuery) (list []sender.Subscription, whole bool, err error) {
	off, fail := q, q
	off.Status, fail.Failing = sender.SubscriptionDisabled, true
	list, next, err := c.History.Subscriptions(ctx, off)
	if err != nil {
		return nil, false, err
	}
	failing, more, err := c.History.Subscriptions(ctx, fail)
	return append(list, failing...), next+more == "", err
}

func failuresOf(r *history.Rollup) (list []failure, all int64) {
	for class, n := range r.Failures {
		list = append(list, failure{Class: class, Count: n})
		all += n
	}
	for i := range list {
		list[i].Share = float64(list[i].Count) / float64(all)
	}
	slices.SortFunc(list, func(a, b failure) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Class, b.Class))
	})
	return list[:min(len(list), 7)], all
}

// tiles are the figures of the first page, with their lines.
type tiles struct {
	Rate        float64 // delivered a minute, lately
	Success     string  // of the deliveries that have ended
	FirstTry    string
	First       history.Latency // to the first attempt, lately
	Delivered   charts.Spark
	Successes   charts.Spark
	FirstLine   charts.Spark
	BacklogLine charts.Spark
	DeadLine    charts.Spark
}

func tilesOf(s *series) tiles {
	name := func(what string) string { return what + ", over " + s.Words }
	t := tiles{
		Success:   strings.TrimSuffix(look.Percent(s.Whole.Succeeded, s.Whole.Succeeded+s.Whole.DeadLettered), " %"),
		FirstTry:  look.Percent(s.Whole.FirstTry, s.Whole.Succeeded),
		Delivered: charts.Spark{Name: name("Delivered a minute")}, Successes: charts.Spark{Name: name("Share of the deliveries that succeeded"), Class: "ok-s", Share: true},
		FirstLine: charts.Spark{Name: name("99th percentile of the time to the first attempt")}, BacklogLine: charts.Spark{Name: name("Backlog")},
		DeadLine: charts.Spark{Name: name("Dead-lettered"), Class: "bad-s"},
	}
	lately := s.last(max(5*time.Minute, 2*s.Step))
	if t.First = oursToFirst(&lately); t.First.Count() == 0 {
		t.First = oursToFirst(&s.Whole)
	}
	share, backlog, first, dead := 1.0, 0.0, 0.0, 0.0
	for i := range s.Intervals {
		v := &s.Intervals[i]
		t.Delivered.Values = append(t.Delivered.Values, float64(v.Delivered)/v.Minutes(s.Step))
		if n := v.Succeeded + v.DeadLettered; n > 0 {
			share = float64(v.Succeeded) / float64(n)
		}
		if v.Attempts()+v.Published > 0 {
			backlog = float64(v.Backlog)
		}
		if ours := oursToFirst(&v.Rollup); ours.Count() > 0 {
			first = ours.Quantile(.99).Seconds()
		}
		dead += float64(v.DeadLettered)
		t.Successes.Values = append(t.Successes.Values, share)
		t.BacklogLine.Values = append(t.BacklogLine.Values, backlog)
		t.FirstLine.Values = append(t.FirstLine.Values, first)
		t.DeadLine.Values = append(t.DeadLine.Values, dead)
	}
	n := len(s.Intervals)
	t.Rate = float64(s.Intervals[n-1].Delivered+s.Intervals[n-2].Delivered) / (s.Step.Minutes() + s.Intervals[n-1].Minutes(s.Step))
	return t
}
