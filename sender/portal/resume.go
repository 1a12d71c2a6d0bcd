package portal

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
)

// resumeView is the page that says how many deliveries are sent before a resume from a time
// on is confirmed.
type resumeView struct {
	endpointView
	Since string // as it was typed
	From  time.Time
	Sent  int
	Over  bool // there are more than Sent
}

// Cancelled is how many are not sent. The backlog was counted a moment before.
func (v *resumeView) Cancelled() int64 { return max(0, v.Backlog-int64(v.Sent)) }

func (p *Portal) resuming(ctx context.Context, r *http.Request) (view, error) {
	e, err := p.own(ctx, r)
	if err != nil {
		return view{}, err
	}
	v := resumeView{endpointView: endpointView{Subscription: e}, Since: r.URL.Query().Get("since")}
	if v.Held() {
		since, err := sinceOf(r.URL.Query())
		if err != nil {
			return view{}, err
		}
		v.From = since
		if v.Sent, v.Over, err = p.countHeld(ctx, &e, since); err != nil {
			return view{}, err
		}
	}
	return view{title: "Resume", tab: "endpoints", data: &v}, nil
}

// sinceOf is the time from which on deliveries are sent.
func sinceOf(form url.Values) (time.Time, error) {
	since, err := timeOf("Published since", form.Get("since"))
	if err == nil && since.IsZero() {
		err = badInput("Published since: it is empty. Give the time from which on deliveries are sent.")
	}
	return since, err
}

// countHeld counts the deliveries of an endpoint that are held and were published since a
// time. It counts up to 1,000 of them, so that its cost is bounded as that of every page.
func (p *Portal) countHeld(ctx context.Context, e *sender.Subscription, since time.Time) (n int, over bool, err error) {
	const pages, aPage = 5, 200
	q := history.DeliveryQuery{Subscription: e.ID, Status: sender.StatusHeld, Since: since, Limit: aPage}
	for range pages {
		list, next, err := p.b.History.ForSubscriber(e.Subscriber).Deliveries(ctx, q)
		if err != nil || next == "" {
			return n + len(list), false, err
		}
		n, q.Cursor = n+len(list), next
	}
	return n, true, nil
}
