package console

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
)

// healthView is the first page: how the sender as a whole is doing.
type healthView struct {
	Counts   history.Counts
	Due      time.Duration // how long the oldest delivery has been due
	Statuses []statusCount
	Periods  []period
	Failures []failure
	Disabled []sender.Subscription
	Notices  []sender.Notice
}

// MoreDisabled is the number of disabled subscriptions if the list does not have them
// all: it looks at a bounded number.
func (h *healthView) MoreDisabled() int64 {
	n := h.Counts.Subscriptions[sender.SubscriptionDisabled]
	if n == int64(len(h.Disabled)) {
		return 0
	}
	return n
}

type statusCount struct {
	Status sender.SubscriptionStatus
	Count  int64
}

// period has the figures of some time up to now.
type period struct {
	Name string
	history.Rollup
}

// Success is the share of attempts that got a 2xx answer, in per cent; "" if there were
// no attempts.
func (p *period) Success() string {
	n := p.Attempts()
	if n == 0 {
		return ""
	}
	// Rounded down, so that only a share of all attempts reads as 100.
	return percent(p.Delivered * 1000 / n)
}

func percent(thousandths int64) string {
	return count(thousandths/10) + "." + count(thousandths%10) + " %"
}

type failure struct {
	Class sender.Class
	Count int64
}

// attention bounds each list of the first page.
const attention = 10

func (c *Console) health(ctx context.Context, _ *http.Request) (view, error) {
	counts, err := c.History.Counts(ctx)
	if err != nil {
		return view{}, err
	}
	h := healthView{Counts: counts}
	if !counts.OldestDue.IsZero() {
		h.Due = max(0, counts.At.Sub(counts.OldestDue))
	}
	for _, s := range []sender.SubscriptionStatus{sender.SubscriptionActive, sender.SubscriptionPaused, sender.SubscriptionDisabled, sender.SubscriptionClosing} {
		h.Statuses = append(h.Statuses, statusCount{s, counts.Subscriptions[s]})
	}
	if err := c.recent(ctx, &h); err != nil {
		return view{}, err
	}
	if h.Disabled, _, err = c.History.Subscriptions(ctx, sender.SubscriptionQuery{Status: sender.SubscriptionDisabled, Implicit: true, Limit: attention}); err != nil {
		return view{}, err
	}
	if h.Notices, _, err = c.History.Notices(ctx, history.NoticeQuery{Unread: true, Limit: attention}); err != nil {
		return view{}, err
	}
	return view{title: "Health", nav: "health", data: &h}, nil
}

// recent sums up the minutes of the last day.
func (c *Console) recent(ctx context.Context, h *healthView) error {
	now := h.Counts.At
	minutes, err := c.History.Rollups(ctx, now.Add(-24*time.Hour), now.Add(time.Minute))
	if err != nil {
		return err
	}
	for _, p := range []struct {
		name string
		long time.Duration
	}{{"5 minutes", 5 * time.Minute}, {"1 hour", time.Hour}, {"24 hours", 24 * time.Hour}} {
		sum := period{Name: p.name}
		for i := range minutes {
			if minutes[i].Minute.After(now.Add(-p.long)) {
				sum.Merge(&minutes[i])
			}
		}
		h.Periods = append(h.Periods, sum)
	}
	for class, n := range h.Periods[1].Failures {
		h.Failures = append(h.Failures, failure{class, n})
	}
	slices.SortFunc(h.Failures, func(a, b failure) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Class, b.Class))
	})
	return nil
}
