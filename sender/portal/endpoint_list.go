package portal

import (
	"context"
	"net/http"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/look"
	"github.com/surehook/surehook/sender/internal/look/charts"
)

const (
	endpointsAPage = 20
	newest         = 10 // deliveries on a page that is about something else
	day            = 24 * time.Hour
)

type endpointsView struct {
	List   []endpointCard
	Foot   look.Pages
	Newest []sender.Delivery
}

// endpointCard is an endpoint in the list.
type endpointCard struct {
	sender.Subscription
	figures
	GivesUp time.Time // when no more is tried unless it answers; zero: not known
}

// figures are an endpoint's, of its last attempts and of a day.
type figures struct {
	Bars           []charts.Outcome // the oldest first
	Good, Attempts int64            // of 24 hours
	P95            time.Duration    // of their durations; 0: none was made
}

func (p *Portal) endpoints(ctx context.Context, r *http.Request) (view, error) {
	s, q := sessionIn(ctx), r.URL.Query()
	list, err := p.b.Registry.Subscriptions(ctx, s.Subscriber, q.Get("after"), endpointsAPage+1)
	if err != nil {
		return view{}, err
	}
	var v endpointsView
	if len(list) > endpointsAPage {
		list = list[:endpointsAPage]
		v.Foot.Next = with(q, "after", list[endpointsAPage-1].ID)
	}
	if q.Get("after") != "" {
		v.Foot.First = with(q, "after", "")
	}
	all, err := p.figures(ctx, s, list)
	if err != nil {
		return view{}, err
	}
	for i, e := range list {
		v.List = append(v.List, endpointCard{e, all[i], p.givesUp(&e)})
	}
	if v.Newest, _, err = p.b.History.ForSubscriber(s.Subscriber).Deliveries(ctx, history.DeliveryQuery{Limit: newest}); err != nil {
		return view{}, err
	}
	return view{title: "Endpoints", tab: "endpoints", live: true, data: &v}, nil
}

func (p *Portal) givesUp(e *sender.Subscription) time.Time {
	policy := sender.EffectivePolicy{DisableAfter: p.cfg.DisableAfter}
	switch {
	case e.Status != sender.SubscriptionActive:
		return time.Time{}
	case p.cfg.Policy != nil:
		policy = p.cfg.Policy(e.Settings)
	case p.cfg.DisableAfter <= 0:
		return time.Time{}
	}
	return policy.DisabledAt(e.Health, p.cfg.Now())
}

// figures are those of some endpoints, in their order.
func (p *Portal) figures(ctx context.Context, s *session, list []sender.Subscription) ([]figures, error) {
	ids := make([]string, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	now := p.cfg.Now()
	hours, err := p.b.History.ForSubscriber(s.Subscriber).SubscriptionRollups(ctx, ids, now.Add(-day).Truncate(time.Hour), now.Add(time.Hour))
	if err != nil {
		return nil, err
	}
	sums := map[string]*history.SubscriptionRollup{}
	for i := range hours {
		if sum, ok := sums[hours[i].Subscription]; ok {
			sum.Merge(&hours[i])
		} else {
			sums[hours[i].Subscription] = &hours[i]
		}
	}
	all := make([]figures, len(list))
	for i := range list {
		all[i].Bars = barsOf(list[i].Health.Recent)
		if sum, ok := sums[list[i].ID]; ok {
			all[i].Good, all[i].Attempts, all[i].P95 = sum.Delivered, sum.Attempts(), sum.Duration.Quantile(0.95)
		}
	}
	return all, nil
}

// barsOf are the last outcomes, with what was never attempted before them.
func barsOf(r sender.Recent) []charts.Outcome {
	bars := make([]charts.Outcome, sender.RecentOutcomes)
	outcomes := r.Outcomes()
	for i, o := range outcomes {
		at := len(bars) - len(outcomes) + i
		if bars[at] = charts.Failure; o == sender.OutcomeSucceeded {
			bars[at] = charts.Success
		}
	}
	return bars
}
