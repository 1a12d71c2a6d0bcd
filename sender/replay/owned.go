package replay

import (
	"context"
	"fmt"

	"github.com/surehook/surehook/sender"
)

// Owned are the Replays of one subscriber, for what customers ask for: it neither sees nor
// touches another's deliveries, subscriptions or replays. Their ids answer ErrNotFound, just as
// an id that nobody has. Its own are the replays whose filters name it. It is safe for
// concurrent use.
type Owned struct {
	all        *Replays
	subscriber string
}

// ForSubscriber returns the Replays of one subscriber. It asks no database whether there is
// such a subscriber. An empty id is no subscriber: everything is refused then.
func (r *Replays) ForSubscriber(id string) *Owned { return &Owned{all: r, subscriber: id} }

// MaxUnfinished is how many of a subscriber's replays may be running or paused. No other
// one is created then: a replay of delivered deliveries adds a little to the cost of every
// delivery, also of other subscribers. Others cost nobody anything: on PostgreSQL, a few more of
// them can be created at the same moment.
const MaxUnfinished = 20

// Create is [Replays.Create] for the subscriber's deliveries. Filter.Subscriber may be left
// out. Only the operator can send again what is beyond the reach: Force is refused with
// ErrInvalid. ErrStatus: MaxUnfinished of the subscriber's replays are running or paused.
func (o *Owned) Create(ctx context.Context, n Request) (Replay, error) {
	if n.Force {
		return Replay{}, fmt.Errorf("%w replay: Force is set: a subscriber cannot send again what is beyond the reach: leave Force out, or have the operator use Replays.Create", sender.ErrInvalid)
	}
	var err error
	if n.Filter.Subscriber, err = o.bound(n.Filter.Subscriber); err != nil {
		return Replay{}, err
	}
	return o.all.create(ctx, n, MaxUnfinished)
}

// Preview is [Replays.Preview] for the subscriber's deliveries. Filter.Subscriber may be left
// out.
func (o *Owned) Preview(ctx context.Context, f Filter) (Preview, error) {
	var err error
	if f.Subscriber, err = o.bound(f.Subscriber); err != nil {
		return Preview{}, err
	}
	return o.all.Preview(ctx, f)
}

// PreviewSome is [Replays.PreviewSome], as Preview.
func (o *Owned) PreviewSome(ctx context.Context, f Filter) (Preview, error) {
	var err error
	if f.Subscriber, err = o.bound(f.Subscriber); err != nil {
		return Preview{}, err
	}
	return o.all.PreviewSome(ctx, f)
}

// Get is [Replays.Get] for one of the subscriber's replays.
func (o *Owned) Get(ctx context.Context, id string) (Replay, error) {
	r, err := o.all.Get(ctx, id)
	if err == nil && (o.subscriber == "" || r.Filter.Subscriber != o.subscriber) {
		err = fmt.Errorf("%w: replay %q", sender.ErrNotFound, id)
	}
	if err != nil {
		return Replay{}, err
	}
	return r, nil
}

// List is [Replays.List] of the subscriber's replays. q.Subscriber may be left out.
func (o *Owned) List(ctx context.Context, q Query) ([]Replay, error) {
	var err error
	if q.Subscriber, err = o.bound(q.Subscriber); err != nil {
		return nil, err
	}
	if q.After != "" {
		if _, err := o.Get(ctx, q.After); err != nil {
			return nil, err
		}
	}
	return o.all.List(ctx, q)
}

// Pause is [Replays.Pause] for one of the subscriber's replays.
func (o *Owned) Pause(ctx context.Context, id string) (Replay, error) {
	return o.change(ctx, id, o.all.Pause)
}

// Continue is [Replays.Continue] for one of the subscriber's replays.
func (o *Owned) Continue(ctx context.Context, id string) (Replay, error) {
	return o.change(ctx, id, o.all.Continue)
}

// Cancel is [Replays.Cancel] for one of the subscriber's replays.
func (o *Owned) Cancel(ctx context.Context, id string) (Replay, error) {
	return o.change(ctx, id, o.all.Cancel)
}

// change changes a replay of the subscriber's. A replay's owner never changes.
func (o *Owned) change(ctx context.Context, id string, to func(context.Context, string) (Replay, error)) (Replay, error) {
	if _, err := o.Get(ctx, id); err != nil {
		return Replay{}, err
	}
	return to(ctx, id)
}

// bound is the subscriber that a filter or a query is restricted to. An empty one would
// select everybody's.
func (o *Owned) bound(asked string) (string, error) {
	if o.subscriber == "" {
		return "", fmt.Errorf("%w subscriber: it is empty: give ForSubscriber the id of the one who asks", sender.ErrInvalid)
	}
	if asked != "" && asked != o.subscriber {
		return "", fmt.Errorf("%w: subscriber %q", sender.ErrNotFound, asked)
	}
	return o.subscriber, nil
}
