package console

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/look"
	"github.com/surehook/surehook/sender/internal/look/charts"
)

// subscriptionRow is a subscription in a list.
type subscriptionRow struct {
	sender.Subscription
	State look.State
	// Way is how far it is on the way to being disabled, from 0 to 1, and Left how much
	// longer that takes if nothing succeeds. Way is negative if it is on none.
	Way  float64
	Left time.Duration

	Day history.SubscriptionRollup // the last 24 hours
}

// Success is the share of the attempts of the last 24 hours that were answered with 2xx.
func (r *subscriptionRow) Success() string { return look.Percent(r.Day.Delivered, r.Day.Attempts()) }

// Bad tells whether less than half of its attempts succeeded.
func (r *subscriptionRow) Bad() bool { return 2*r.Day.Delivered < r.Day.Attempts() }

// P95 is within which time 95 % of its attempts ended; "–" if there were none.
func (r *subscriptionRow) P95() string {
	if r.Day.Duration.Count() == 0 {
		return "–"
	}
	return look.Took(r.Day.Duration.Quantile(.95))
}

// Bars are its last outcomes.
func (r *subscriptionRow) Bars() any {
	last := r.Health.Recent.Outcomes()
	outcomes := make([]charts.Outcome, sender.RecentOutcomes-len(last), sender.RecentOutcomes)
	for _, o := range last {
		if o == sender.OutcomeSucceeded {
			outcomes = append(outcomes, charts.Success)
		} else {
			outcomes = append(outcomes, charts.Failure)
		}
	}
	return charts.Bars(outcomes)
}

// rows are subscriptions with their figures of the last 24 hours.
func (c *Console) rows(ctx context.Context, list []sender.Subscription) ([]subscriptionRow, error) {
	rows := make([]subscriptionRow, len(list))
	at := make(map[string]*subscriptionRow, len(list))
	ids := make([]string, len(list))
	for i, s := range list {
		rows[i] = c.row(s)
		at[s.ID], ids[i] = &rows[i], s.ID
	}
	to := c.cfg.Now().UTC().Truncate(time.Hour).Add(time.Hour)
	for some := range slices.Chunk(ids, maxLimit) {
		hours, err := c.History.SubscriptionRollups(ctx, some, to.Add(-24*time.Hour), to)
		if err != nil {
			return nil, err
		}
		for i := range hours {
			if r := at[hours[i].Subscription]; r != nil {
				r.Day.Merge(&hours[i])
			}
		}
	}
	return rows, nil
}

func (c *Console) row(s sender.Subscription) subscriptionRow {
	r := subscriptionRow{Subscription: s, State: look.Subscription(s), Way: -1}
	if since := s.Health.FailingSince; !since.IsZero() && s.Status == sender.SubscriptionActive {
		if after := c.disableAfter(&s); after > 0 {
			failing := max(0, c.cfg.Now().Sub(since))
			r.Way, r.Left = min(1, failing.Seconds()/after.Seconds()), max(0, after-failing)
		}
	}
	return r
}

// severity orders states, the worst first.
var severity = []string{"Disabled", "Failing", "On trial", "Slow", "Paused", "Closing", "New", "Healthy"}

func worstFirst(a, b subscriptionRow) int {
	return cmp.Or(
		cmp.Compare(slices.Index(severity, a.State.Word), slices.Index(severity, b.State.Word)),
		cmp.Compare(b.Backlog, a.Backlog), cmp.Compare(b.DeadLettered, a.DeadLettered))
}

type subscriptionsView struct {
	Filter   filter
	Failing  bool
	Implicit bool
	Text     string
	Chips    []chip
	List     []subscriptionRow
	Pages    look.Pages
	More     bool // the search is not at its end
	Hidden   bool // more are in trouble than those that stand first
	Whole    int64
}

// chip selects a part of a list.
type chip struct {
	Link, Title string
	State       look.State // its icon; zero: it has none
	Count       int64
	Counted     bool
	Current     bool
}

// maxLimit is the longest page of a list.
const maxLimit = 200

func (c *Console) subscriptions(ctx context.Context, r *http.Request) (view, error) {
	q := r.URL.Query()
	f, err := filterOf(q)
	if err != nil {
		return view{}, err
	}
	v := subscriptionsView{Filter: f, Failing: q.Get("failing") != "", Implicit: q.Get("implicit") != "", Text: strings.TrimSpace(q.Get("q"))}
	list, next, err := c.listSubscriptions(ctx, &v, q.Get("cursor"))
	if err != nil {
		return view{}, err
	}
	counts, err := c.History.Counts(ctx)
	if err != nil {
		return view{}, err
	}
	if v.List, err = c.rows(ctx, list); err != nil {
		return view{}, err
	}
	if !v.Failing {
		slices.SortStableFunc(v.List, worstFirst)
	}
	v.More, v.Chips = next != "", subscriptionChips(&v, &counts)
	for _, n := range counts.Subscriptions {
		v.Whole += n
	}
	v.Pages = pagesOf(q, "cursor", next, look.Plural(len(v.List), "subscription")+" on this page")
	page := view{title: "Subscriptions", nav: "subscriptions", data: &v, counts: &counts}
	for i := range v.List {
		page.owners = append(page.owners, v.List[i].Subscriber)
	}
	return page, nil
}

// listSubscriptions is a page of those that are asked for. A list of all begins with those
// that are in trouble, as far as they have room; the pages leave them out where they come by
// their age.
func (c *Console) listSubscriptions(ctx context.Context, v *subscriptionsView, cursor string) (list []sender.Subscription, next string, err error) {
	q := sender.SubscriptionQuery{
		Subscriber: v.Filter.Subscriber, Status: sender.SubscriptionStatus(v.Filter.Status), Failing: v.Failing, URL: v.Text, Implicit: v.Implicit, Cursor: cursor, Limit: pageSize,
	}
	page, next, err := c.History.Subscriptions(ctx, q)
	if err != nil || q.Status != "" || q.Failing || q.URL != "" {
		return page, next, err
	}
	q.Cursor = ""
	trouble, whole, err := c.troubled(ctx, q)
	if err != nil {
		return nil, "", err
	}
	if cursor == "" {
		list, v.Hidden = trouble, !whole
	}
	for _, s := range page {
		if !slices.ContainsFunc(trouble, func(t sender.Subscription) bool { return t.ID == s.ID }) {
			list = append(list, s)
		}
	}
	return list, next, nil
}

// With is the link to the same list with one of its fields changed, from its first page on.
func (v *subscriptionsView) With(name, value string) string {
	q := url.Values{"subscriber": {v.Filter.Subscriber}, "q": {v.Text}, "status": {v.Filter.Status}, "failing": {""}, "implicit": {""}}
	if v.Failing {
		q.Set("failing", "1")
	}
	if v.Implicit {
		q.Set("implicit", "1")
	}
	if name == "failing" || name == "status" { // a list shows one of the two
		q.Del("failing")
		q.Del("status")
	}
	q.Set(name, value)
	maps.DeleteFunc(q, func(_ string, values []string) bool { return values[0] == "" })
	return "?" + q.Encode()
}

func subscriptionChips(v *subscriptionsView, counts *history.Counts) (list []chip) {
	counted := v.Filter.Subscriber == "" && v.Text == "" // the counts are of all
	var all int64
	for _, n := range counts.Subscriptions {
		all += n
	}
	list = append(list, chip{Link: v.With("status", ""), Title: "All", Count: all, Counted: counted, Current: v.Filter.Status == "" && !v.Failing})
	list = append(list, chip{Link: v.With("failing", "1"), Title: "Failing", State: look.State{Icon: "warn", Tone: "bad"}, Current: v.Failing})
	for _, s := range []sender.SubscriptionStatus{sender.SubscriptionActive, sender.SubscriptionDisabled, sender.SubscriptionPaused, sender.SubscriptionClosing} {
		state := look.Subscription(sender.Subscription{Status: s, Health: sender.Health{Lane: sender.LaneProven}})
		title := state.Word
		if s == sender.SubscriptionActive {
			title = "Active"
		}
		if s == sender.SubscriptionClosing && counts.Subscriptions[s] == 0 {
			continue
		}
		list = append(list, chip{Link: v.With("status", string(s)), Title: title, State: state, Count: counts.Subscriptions[s], Counted: counted, Current: v.Filter.Status == string(s)})
	}
	return list
}
