package portal

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/look"
)

const deliveriesAPage = 50

type deliveriesView struct {
	Filter    filter
	Statuses  []choice
	Endpoints []choice
	List      []sender.Delivery
	Foot      look.Pages
	Filtered  bool
	Replay    string // the link to a replay of what the list has; "": none can select it
}

// choice is an entry of a list to choose from.
type choice struct {
	Value, Word string
	Chosen      bool
}

// filter has the fields of a list's form as they were typed.
type filter struct {
	Status, Endpoint, Type, Object, Since, Until string
}

func filterOf(get func(string) string) filter {
	return filter{get("status"), get("endpoint"), strings.TrimSpace(get("type")), strings.TrimSpace(get("object")), get("since"), get("until")}
}

// times are its bounds.
func (f *filter) times() (since, until time.Time, err error) {
	if since, err = timeOf("Since", f.Since); err != nil {
		return since, until, err
	}
	until, err = timeOf("Until", f.Until)
	return since, until, err
}

// object is what was typed, as its type alone, or as type/id.
func (f *filter) object() sender.Object {
	kind, id, _ := strings.Cut(f.Object, "/")
	return sender.Object{Type: kind, ID: id}
}

func (p *Portal) deliveries(ctx context.Context, r *http.Request) (view, error) {
	s, q := sessionIn(ctx), r.URL.Query()
	v := deliveriesView{Filter: filterOf(q.Get)}
	v.Filtered = v.Filter != filter{}
	since, until, err := v.Filter.times()
	if err != nil {
		return view{}, err
	}
	for _, status := range []sender.Status{sender.StatusPending, sender.StatusAwaitingRetry, sender.StatusDelivered, sender.StatusDeadLettered, sender.StatusHeld, sender.StatusCancelled, sender.StatusSuperseded} {
		v.Statuses = append(v.Statuses, choice{string(status), statusWord(status), v.Filter.Status == string(status)})
	}
	if v.Endpoints, err = p.choices(ctx, s, v.Filter.Endpoint, ""); err != nil {
		return view{}, err
	}
	list, next, err := p.b.History.ForSubscriber(s.Subscriber).Deliveries(ctx, history.DeliveryQuery{
		Status: sender.Status(v.Filter.Status), Subscription: v.Filter.Endpoint, EventType: v.Filter.Type, Object: v.Filter.object(),
		Since: since, Until: until, Cursor: q.Get("cursor"), Limit: deliveriesAPage,
	})
	if err != nil {
		return view{}, err
	}
	v.List = list
	if next != "" {
		v.Foot.Next = with(q, "cursor", next)
	}
	if q.Get("cursor") != "" {
		v.Foot.First = with(q, "cursor", "")
	}
	if sender.Status(v.Filter.Status) == sender.StatusDeadLettered && v.Filter.Object == "" {
		v.Replay = "replays/new" + with(q, "cursor", "")
	}
	return view{title: "Deliveries", tab: "deliveries", live: true, data: &v}, nil
}

// choices are the subscriber's endpoints, those of the first 100 that have the status; "":
// any.
func (p *Portal) choices(ctx context.Context, s *session, chosen string, status sender.SubscriptionStatus) (all []choice, err error) {
	list, err := p.b.Registry.Subscriptions(ctx, s.Subscriber, "", 100)
	known := chosen == ""
	for _, e := range list {
		if status != "" && e.Status != status {
			continue
		}
		all = append(all, choice{e.ID, strings.TrimPrefix(strings.TrimPrefix(e.URL, "https://"), "http://"), e.ID == chosen})
		known = known || e.ID == chosen
	}
	if !known { // it was deleted, or is further on
		all = append(all, choice{chosen, look.Short(chosen), true})
	}
	return all, err
}

type deliveryView struct {
	sender.Delivery
	Reason   reason
	Endpoint bool // it is there, and can be opened
	look.AttemptsPage
	Again  string // what sending it again does; "": it cannot be sent again
	Behind string // the delivery that goes before it; "": none does
	Holds  bool   // later versions of its object wait for it
}

func (p *Portal) delivery(ctx context.Context, r *http.Request) (view, error) {
	mine, id := p.b.History.ForSubscriber(sessionIn(ctx).Subscriber), r.PathValue("id")
	d, attempts, err := look.DeliveryWithAttempts(r.URL.Query().Get("attempt"), func(q history.AttemptQuery) (sender.Delivery, error) { return mine.DeliveryWith(ctx, id, q) })
	if err != nil {
		return view{}, err
	}
	why, err := mine.Why(ctx, id)
	if err != nil {
		return view{}, err
	}
	v := deliveryView{Delivery: d, AttemptsPage: attempts, Reason: reasonOf(&d, why), Endpoint: why.Subscription != "", Behind: why.Behind, Holds: why.HoldsBack}
	switch {
	case d.Redacted || d.Status == sender.StatusCancelled || !v.Endpoint:
	case why.Subscription == sender.SubscriptionPaused || why.Subscription == sender.SubscriptionDisabled:
		v.Again = "It is sent as soon as the endpoint is resumed."
	case d.Status == sender.StatusDelivered:
		v.Again = "It is sent a single time more. If that fails, it stays delivered."
	default:
		v.Again = "It is sent now, and its schedule starts anew."
	}
	return view{title: d.Event.Type, tab: "deliveries", data: &v}, nil
}

// Ended tells whether no attempt follows by itself, although it is not delivered.
func (v *deliveryView) Ended() bool {
	switch v.Status {
	case sender.StatusSuperseded, sender.StatusCancelled, sender.StatusDeadLettered:
		return true
	}
	return false
}

// Outcome is the state of an attempt.
func (v *deliveryView) Outcome(a sender.Attempt) look.State {
	switch a.Class {
	case sender.ClassNone:
		return look.State{Icon: "ok", Tone: "ok", Word: "Succeeded"}
	case sender.ClassTimeout, sender.ClassInterrupted:
		return look.State{Icon: "clock", Tone: "warn", Word: "Failed"}
	}
	return look.State{Icon: "fail", Tone: "bad", Word: "Failed"}
}

// Failure is what went wrong with the attempt that is shown.
func (v *deliveryView) Failure() string { return failure(v.Chosen) }

func (p *Portal) redeliver(ctx context.Context, r *http.Request) (string, string, error) {
	mine, id := p.b.History.ForSubscriber(sessionIn(ctx).Subscriber), r.PathValue("id")
	err := mine.Redeliver(ctx, id)
	if err != nil {
		return "", "", err
	}
	said := "redelivered"
	if d, err := mine.DeliveryWith(ctx, id, history.AttemptQuery{}); err == nil && d.Status == sender.StatusHeld {
		said = "held"
	}
	return "deliveries/" + id, said, nil
}

func (p *Portal) passOver(ctx context.Context, r *http.Request) (string, string, error) {
	id := r.PathValue("id")
	return "deliveries/" + id, "passed", p.b.History.ForSubscriber(sessionIn(ctx).Subscriber).PassOver(ctx, id)
}
