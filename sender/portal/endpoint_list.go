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
	sparkLength    = 32 // deliveries that an endpoint's bars show
)

type endpointsView struct {
	List   []endpointCard
	Foot   look.Pages
	Newest []sender.Delivery
}

// endpointCard is an endpoint in the list.
type endpointCard struct {
	sender.Subscription
	recent
	GivesUp time.Time // when no more is tried unless it answers; zero: not known
}

// recent is what became of an endpoint's newest deliveries.
type recent struct {
	Bars     []charts.Outcome // the oldest first
	Good, Of int64
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
	for _, e := range list {
		c := endpointCard{Subscription: e, GivesUp: p.givesUp(&e)}
		if c.recent, err = p.recent(ctx, s, e.ID); err != nil {
			return view{}, err
		}
		v.List = append(v.List, c)
	}
	if v.Newest, _, err = p.b.History.ForSubscriber(s.Subscriber).Deliveries(ctx, history.DeliveryQuery{Limit: newest}); err != nil {
		return view{}, err
	}
	return view{title: "Endpoints", tab: "endpoints", live: true, data: &v}, nil
}

func (p *Portal) givesUp(e *sender.Subscription) time.Time {
	if since := e.Health.FailingSince; p.cfg.DisableAfter > 0 && !since.IsZero() && e.Status == sender.SubscriptionActive {
		return since.Add(p.cfg.DisableAfter)
	}
	return time.Time{}
}

// recent looks at the last attempts of an endpoint's newest deliveries.
func (p *Portal) recent(ctx context.Context, s *session, id string) (recent, error) {
	list, _, err := p.b.History.ForSubscriber(s.Subscriber).Deliveries(ctx, history.DeliveryQuery{Subscription: id, Limit: sparkLength})
	if err != nil {
		return recent{}, err
	}
	v := recent{Bars: make([]charts.Outcome, sparkLength)}
	at := sparkLength
	for i := range list {
		if list[i].AttemptCount == 0 {
			continue
		}
		at--
		v.Of++
		if v.Bars[at] = charts.Failure; list[i].LastErrorClass == "" {
			v.Bars[at] = charts.Success
			v.Good++
		}
	}
	return v, nil
}
