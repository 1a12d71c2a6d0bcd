package replay_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/replay"
)

// ownedByID are all methods that take a replay's id: a new one belongs here.
var ownedByID = map[string]func(ctx context.Context, o *replay.Owned, id string) (any, error){
	"Get":      func(ctx context.Context, o *replay.Owned, id string) (any, error) { return o.Get(ctx, id) },
	"Pause":    func(ctx context.Context, o *replay.Owned, id string) (any, error) { return o.Pause(ctx, id) },
	"Continue": func(ctx context.Context, o *replay.Owned, id string) (any, error) { return o.Continue(ctx, id) },
	"Cancel":   func(ctx context.Context, o *replay.Owned, id string) (any, error) { return o.Cancel(ctx, id) },
	"List": func(ctx context.Context, o *replay.Owned, id string) (any, error) {
		list, err := o.List(ctx, replay.Query{After: id})
		if len(list) == 0 {
			return replay.Replay{}, err
		}
		return list[0], err
	},
}

// ownedByFilter are all methods that take a filter.
var ownedByFilter = map[string]func(ctx context.Context, o *replay.Owned, f replay.Filter) (int64, error){
	"Create": func(ctx context.Context, o *replay.Owned, f replay.Filter) (int64, error) {
		r, err := o.Create(ctx, replay.Request{Filter: f})
		return r.Matched, err
	},
	"Preview": func(ctx context.Context, o *replay.Owned, f replay.Filter) (int64, error) {
		p, err := o.Preview(ctx, f)
		return p.Count, err
	},
	"PreviewSome": func(ctx context.Context, o *replay.Owned, f replay.Filter) (int64, error) {
		p, err := o.PreviewSome(ctx, f)
		return p.Count, err
	},
}

func TestOwnedReplays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, wire := bedtest.New(t), &answers{status: 500}
		d := b.Dispatcher(dispatch.Config{UnguardedTransport: wire, Policy: givesUpSoon(t)})
		deadLetters(b, d, 2) // of sub_a
		sub, _ := b.Subscribe("sub_b", "https://example.com/")
		b.Publish("sub_b")
		for range 2 {
			_, err := d.RunOnce(t.Context())
			require.NoError(t, err)
			time.Sleep(time.Millisecond)
		}
		all := replays(b, nil)
		mine, theirs := all.ForSubscriber("sub_a"), all.ForSubscriber("sub_b")
		ctx := t.Context()

		for name, method := range ownedByFilter {
			for _, f := range []replay.Filter{{}, {Subscriber: "sub_a"}} {
				n, err := method(ctx, mine, f)
				require.NoError(t, err, name)
				require.EqualValues(t, 2, n, "%s: two of its own, of three", name)
			}
			_, unknown := method(ctx, mine, replay.Filter{Subscription: "wsub_unknown"})
			require.ErrorIs(t, unknown, sender.ErrNotFound, name)
			_, err := method(ctx, mine, replay.Filter{Subscription: sub.ID})
			require.EqualError(t, err, strings.ReplaceAll(unknown.Error(), "wsub_unknown", sub.ID), name)
			_, unknown = method(ctx, mine, replay.Filter{Subscriber: "sub_unknown"})
			_, err = method(ctx, mine, replay.Filter{Subscriber: "sub_b"})
			require.ErrorIs(t, err, sender.ErrNotFound, name)
			require.EqualError(t, err, strings.ReplaceAll(unknown.Error(), "sub_unknown", "sub_b"), name)
		}

		_, err := mine.Create(ctx, replay.Request{Force: true})
		require.ErrorIs(t, err, sender.ErrInvalid, "that is the operator's")
		require.ErrorContains(t, err, "Force")
		own, err := mine.Create(ctx, replay.Request{})
		require.NoError(t, err)
		another, err := theirs.Create(ctx, replay.Request{})
		require.NoError(t, err)
		operators, err := all.Create(ctx, replay.Request{Filter: replay.Filter{Subscription: sub.ID}})
		require.NoError(t, err)
		for name, method := range ownedByID {
			want, unknown := method(ctx, mine, "rpl_unknown")
			require.ErrorIs(t, unknown, sender.ErrNotFound, name)
			for _, r := range []replay.Replay{another, operators} {
				got, err := method(ctx, mine, r.ID)
				require.EqualError(t, err, strings.ReplaceAll(unknown.Error(), "rpl_unknown", r.ID), name)
				require.Equal(t, want, got, name)
				now, err := all.Get(ctx, r.ID)
				require.NoError(t, err)
				require.Equal(t, r, now, "%s has left it as it was", name)
			}
		}
		list, err := mine.List(ctx, replay.Query{})
		require.NoError(t, err)
		require.Len(t, list, 3, "of six")
		_, err = mine.List(ctx, replay.Query{Subscriber: "sub_b"})
		require.ErrorIs(t, err, sender.ErrNotFound)
		list, err = mine.List(ctx, replay.Query{After: own.ID})
		require.NoError(t, err)
		require.Len(t, list, 2)
		for _, step := range []struct {
			change func(context.Context, string) (replay.Replay, error)
			status replay.Status
		}{{mine.Pause, replay.Paused}, {mine.Continue, replay.Running}, {mine.Cancel, replay.Cancelled}, {mine.Get, replay.Cancelled}} {
			r, err := step.change(ctx, own.ID)
			require.NoError(t, err)
			require.Equal(t, step.status, r.Status)
		}

		for err == nil { // two of mine are running
			_, err = mine.Create(ctx, replay.Request{})
		}
		require.ErrorIs(t, err, sender.ErrStatus)
		require.ErrorContains(t, err, "20 replays of the subscriber are running or paused")
		list, err = mine.List(ctx, replay.Query{Limit: 100})
		require.NoError(t, err)
		require.Len(t, list, replay.MaxUnfinished+1, "one was cancelled")
		_, err = all.Create(ctx, replay.Request{Filter: replay.Filter{Subscriber: "sub_a"}})
		require.NoError(t, err, "the operator may")
	})
}

// overtaken is a store on which something is done just before a replay is created.
type overtaken struct {
	replay.Store
	by func()
}

func (o *overtaken) CreateReplay(ctx context.Context, r replay.Replay, b replay.Bounds) (replay.Replay, error) {
	by := o.by
	o.by = func() {}
	by()
	return o.Store.CreateReplay(ctx, r, b)
}

// A caller that gives the id can ask again, also at the same moment, and gets what it has begun,
// as that is now. The id of anything else is refused, and nothing of it is shown.
func TestCreateWithID(t *testing.T) {
	b := bedtest.New(t)
	for _, id := range []string{"sub_a", "sub_b"} {
		b.Subscribe(id, "https://example.com/")
	}
	store := &overtaken{Store: b.Store, by: func() {}}
	all, err := replay.New(store, nil)
	require.NoError(t, err)
	mine, ctx := all.ForSubscriber("sub_a"), t.Context()
	count := func() int {
		list, err := all.List(ctx, replay.Query{Limit: 200})
		require.NoError(t, err)
		return len(list)
	}
	for _, id := range []string{"rpl_", "new", "rpl-1", "rpl_a.b", "rpl_a/b", "rpl_\x00", "rpl_" + strings.Repeat("x", 125)} {
		_, err := mine.Create(ctx, replay.Request{ID: id})
		require.ErrorIs(t, err, sender.ErrInvalid, id)
	}
	n := replay.Request{ID: "rpl_form-1", Rate: 1}
	first, err := mine.Create(ctx, n)
	require.NoError(t, err)
	require.Equal(t, n.ID, first.ID)
	paused, err := mine.Pause(ctx, first.ID)
	require.NoError(t, err)
	n.Rate = 5
	again, err := mine.Create(ctx, n)
	require.NoError(t, err)
	require.Equal(t, paused, again)
	for name, create := range map[string]func(context.Context, replay.Request) (replay.Replay, error){"another's": all.ForSubscriber("sub_b").Create, "the operator's": all.Create} {
		r, err := create(ctx, n)
		require.ErrorIs(t, err, sender.ErrExists, name)
		require.Zero(t, r, name)
	}
	require.Equal(t, 1, count())

	// The other call takes the id, or with it the last room that there is.
	for range 2 {
		n.ID += "x"
		var other replay.Replay
		store.by = func() { other, err = mine.Create(ctx, n) }
		r, second := mine.Create(ctx, n)
		require.NoError(t, errors.Join(err, second))
		require.Equal(t, other, r)
		for err == nil && count() < replay.MaxUnfinished-1 {
			_, err = mine.Create(ctx, replay.Request{})
		}
		require.NoError(t, err)
	}
	require.Equal(t, replay.MaxUnfinished, count())
	n.ID += "x"
	_, err = mine.Create(ctx, n)
	require.ErrorIs(t, err, sender.ErrStatus)
}

// A caller whose id was forgotten does not pass for one who sees all.
func TestOwnedReplaysOfNobody(t *testing.T) {
	b := bedtest.New(t)
	all := replays(b, nil)
	r, err := all.Create(t.Context(), replay.Request{})
	require.NoError(t, err)
	nobody := all.ForSubscriber("")
	for name, method := range ownedByID {
		_, err := method(t.Context(), nobody, r.ID)
		require.Error(t, err, name)
	}
	for name, method := range ownedByFilter {
		_, err := method(t.Context(), nobody, replay.Filter{})
		require.ErrorIs(t, err, sender.ErrInvalid, name)
	}
	_, err = nobody.List(t.Context(), replay.Query{})
	require.ErrorIs(t, err, sender.ErrInvalid)
	now, err := all.Get(t.Context(), r.ID)
	require.NoError(t, err)
	require.Equal(t, r, now)
}
