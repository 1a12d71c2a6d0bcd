package history_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/sendertest"
)

// owned has a delivery to each of two subscribers, which failed once.
type owned struct {
	*bedtest.Bed
	dispatcher   *dispatch.Dispatcher
	endpoint     *sendertest.RoundTripper
	mine, theirs sender.Delivery
}

func newOwned(t *testing.T) *owned {
	t.Helper()
	o := &owned{Bed: bedtest.New(t), endpoint: sendertest.NewRoundTripper(sendertest.Status(500))}
	o.dispatcher = o.Dispatcher(dispatch.Config{UnguardedTransport: o.endpoint})
	for _, to := range []struct {
		subscriber string
		delivery   *sender.Delivery
	}{{"sub_a", &o.mine}, {"sub_b", &o.theirs}} {
		o.Subscribe(to.subscriber, "http://endpoint/")
		o.Publish(to.subscriber)
		_, err := o.dispatcher.RunOnce(t.Context())
		require.NoError(t, err)
		page, _, err := o.History.Deliveries(t.Context(), history.DeliveryQuery{Subscriber: to.subscriber})
		require.NoError(t, err)
		require.Len(t, page, 1)
		*to.delivery = page[0]
	}
	return o
}

func TestOwnedShowsAndSendsItsOwn(t *testing.T) {
	o, ctx := newOwned(t), t.Context()
	mine := o.History.ForSubscriber("sub_a")
	d, err := mine.Delivery(ctx, o.mine.ID)
	require.NoError(t, err)
	require.Len(t, d.Attempts, 1)
	require.NotEmpty(t, d.Body)
	e, err := mine.Event(ctx, o.mine.Event.ID)
	require.NoError(t, err)
	require.Equal(t, d.Body, e.Body)
	why, err := mine.Why(ctx, o.mine.ID)
	require.NoError(t, err)
	require.Equal(t, history.WhyAwaitingRetry, why.Reason)
	for _, q := range []history.DeliveryQuery{{}, {Subscriber: "sub_a"}, {Subscription: o.mine.Subscription}, {Event: o.mine.Event.ID}} {
		page, next, err := mine.Deliveries(ctx, q)
		require.NoError(t, err)
		require.Empty(t, next)
		require.Len(t, page, 1, "%+v", q)
		require.Equal(t, o.mine.ID, page[0].ID)
	}
	d, err = mine.DeliveryWith(ctx, o.mine.ID, history.AttemptQuery{Before: 1, Limit: history.MaxAttempts})
	require.NoError(t, err)
	require.Empty(t, d.Attempts)
	require.Equal(t, 1, d.AttemptCount)
	for _, q := range []history.AttemptQuery{{Before: -1}, {Limit: -1}, {Limit: history.MaxAttempts + 1}} {
		_, err = mine.DeliveryWith(ctx, o.mine.ID, q)
		require.ErrorIs(t, err, sender.ErrInvalid, "%+v", q)
	}
	require.NoError(t, mine.Redeliver(ctx, o.mine.ID))
	stats, err := o.dispatcher.RunOnce(ctx)
	require.NoError(t, err)
	require.Equal(t, 1, stats.Attempted)
}

// byID are all methods that take an id: a new one belongs here.
var byID = map[string]func(ctx context.Context, o *history.Owned, d sender.Delivery) (any, string, error){
	"Delivery": func(ctx context.Context, o *history.Owned, d sender.Delivery) (any, string, error) {
		got, err := o.Delivery(ctx, d.ID)
		return got, d.ID, err
	},
	"DeliveryWith": func(ctx context.Context, o *history.Owned, d sender.Delivery) (any, string, error) {
		got, err := o.DeliveryWith(ctx, d.ID, history.AttemptQuery{Limit: 1})
		return got, d.ID, err
	},
	"Why": func(ctx context.Context, o *history.Owned, d sender.Delivery) (any, string, error) {
		got, err := o.Why(ctx, d.ID)
		return got, d.ID, err
	},
	"Event": func(ctx context.Context, o *history.Owned, d sender.Delivery) (any, string, error) {
		got, err := o.Event(ctx, d.Event.ID)
		return got, d.Event.ID, err
	},
	"WhyOf": func(ctx context.Context, o *history.Owned, d sender.Delivery) (any, string, error) {
		got, err := o.WhyOf(ctx, d.Event.ID, cmp.Or(d.Subscription, "wsub_unknown"))
		return got, d.Event.ID, err
	},
	"Redeliver": func(ctx context.Context, o *history.Owned, d sender.Delivery) (any, string, error) {
		return nil, d.ID, o.Redeliver(ctx, d.ID)
	},
}

// The answer about another's delivery is the same as about an id that nobody has.
func TestOwnedHidesAnothers(t *testing.T) {
	o, ctx := newOwned(t), t.Context()
	mine := o.History.ForSubscriber("sub_a")
	unknown := sender.Delivery{ID: "dlv_unknown", Event: sender.EventInfo{ID: "evt_unknown"}}
	for name, method := range byID {
		want, id, err := method(ctx, mine, unknown)
		require.ErrorIs(t, err, sender.ErrNotFound, name)
		text := strings.ReplaceAll(err.Error(), id, "ID")
		got, id, err := method(ctx, mine, o.theirs)
		require.ErrorIs(t, err, sender.ErrNotFound, name)
		require.Equal(t, text, strings.ReplaceAll(err.Error(), id, "ID"), name)
		require.Equal(t, want, got, "%s returns nothing of it", name)
		_, _, err = method(ctx, mine, o.mine)
		require.NoError(t, err, name)
	}
	for _, q := range []history.DeliveryQuery{{Subscriber: "sub_b"}, {Subscription: o.theirs.Subscription}, {Event: o.theirs.Event.ID}} {
		page, next, err := mine.Deliveries(ctx, q)
		require.NoError(t, err)
		require.Empty(t, page, "%+v", q)
		require.Empty(t, next)
	}
	stats, err := o.dispatcher.RunOnce(ctx)
	require.NoError(t, err)
	require.Equal(t, 1, stats.Attempted, "mine was sent again, and theirs was not")

	// An event for everybody is nobody's own.
	everyones := o.Publish("")
	_, err = mine.Event(ctx, everyones.ID)
	require.ErrorIs(t, err, sender.ErrNotFound)
}

// A caller whose id was forgotten does not pass for one who sees all.
func TestOwnedByNobody(t *testing.T) {
	o, ctx := newOwned(t), t.Context()
	nobody := o.History.ForSubscriber("")
	for name, method := range byID {
		_, _, err := method(ctx, nobody, o.mine)
		require.ErrorIs(t, err, sender.ErrInvalid, name)
	}
	everyones := o.Publish("")
	_, err := nobody.Event(ctx, everyones.ID)
	require.ErrorIs(t, err, sender.ErrInvalid)
	page, _, err := nobody.Deliveries(ctx, history.DeliveryQuery{})
	require.ErrorIs(t, err, sender.ErrInvalid)
	require.Empty(t, page)
	_, _, err = o.History.ForSubscriber("sub_a").Deliveries(ctx, history.DeliveryQuery{Limit: -1})
	require.True(t, errors.Is(err, sender.ErrInvalid))
}

// countedSubscriptions counts how often subscriptions are listed.
type countedSubscriptions struct {
	history.Store
	calls int
}

func (s *countedSubscriptions) Subscriptions(ctx context.Context, q sender.SubscriptionQuery) ([]sender.Subscription, string, error) {
	s.calls++
	return s.Store.Subscriptions(ctx, q)
}

// A customer who asks for too much at once costs no statement for each of it.
func TestOwnedRollupsAreBounded(t *testing.T) {
	store := &countedSubscriptions{Store: bedtest.New(t).Store}
	all, err := history.New(store, nil)
	require.NoError(t, err)
	ids := make([]string, 201)
	for i := range ids {
		ids[i] = fmt.Sprintf("wsub_%d", i)
	}
	now := time.Now()
	_, err = all.ForSubscriber("sub_a").SubscriptionRollups(t.Context(), ids, now.Add(-time.Hour), now)
	require.ErrorIs(t, err, sender.ErrInvalid)
	require.Zero(t, store.calls)
}
