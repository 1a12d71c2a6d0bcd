package feed_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/feed"
	"github.com/surehook/surehook/sender/history"
)

func TestPages(t *testing.T) {
	b := newBed(t, nil, "sub_a", "sub_b")
	p := b.page(feed.Query{Viewer: "sub_a"})
	require.Empty(t, p.Events)
	var all, ofA []string
	for i := range 7 {
		to := []string{"", "sub_a", "sub_b"}[i%3]
		id := b.publish(to)
		all = append(all, id)
		if to != "sub_b" {
			ofA = append(ofA, id)
		}
	}
	follow := func(viewer, after string, limit int) (got []string) {
		for {
			p := b.page(feed.Query{Viewer: viewer, After: after, Limit: limit})
			if len(p.Events) == 0 {
				return got
			}
			require.LessOrEqual(t, len(p.Events), limit)
			got, after = append(got, ids(p)...), p.Next
		}
	}
	for _, limit := range []int{1, 2, 200} {
		require.Equal(t, ofA, follow("sub_a", "", limit))
		require.Equal(t, ofA, follow("sub_a", p.Next, limit), "from a cursor of when it was empty")
		require.Equal(t, all, follow(sender.Operator, "", limit))
	}
	require.Len(t, b.page(feed.Query{Viewer: "sub_a", Limit: 3}).Events, 3)
}

func TestPagesAreBounded(t *testing.T) {
	b := newBed(t, &feed.ReaderConfig{PageBytes: 1})
	first, second := b.publish(""), b.publish("")
	p := b.page(feed.Query{Viewer: sender.Operator})
	require.Equal(t, []string{first}, ids(p), "one that is larger comes alone")
	require.Equal(t, []string{second}, ids(b.page(feed.Query{Viewer: sender.Operator, After: p.Next})))
}

// If a viewer may see none of many events in a row, one call gets past all of them.
func TestEmptyPageIsTheEnd(t *testing.T) {
	b := newBed(t, nil, "sub_a", "sub_b")
	for range history.MaxExamined + 10 {
		b.publish("sub_b")
	}
	mine := b.publish("sub_a")
	require.Equal(t, []string{mine}, ids(b.page(feed.Query{Viewer: "sub_a"})))
	require.GreaterOrEqual(t, b.spy.pages.Load(), int64(2))
}

func TestExpired(t *testing.T) {
	b := newBed(t, nil)
	at := func(q feed.Query) feed.Query { q.Viewer = sender.Operator; return q }
	start := b.page(at(feed.Query{}))
	b.publish("")
	read := b.page(at(feed.Query{After: start.Next}))
	b.publish("")
	b.prune()

	for _, old := range []string{start.Next, read.Next} {
		_, err := b.reader.Page(t.Context(), at(feed.Query{After: old, Wait: time.Second}))
		require.ErrorIs(t, err, feed.ErrExpired)
		var expired *feed.ExpiredError
		require.ErrorAs(t, err, &expired)
		require.False(t, expired.Ahead)
		// The cursor that an ExpiredError offers works, and goes on working.
		p := b.page(at(feed.Query{After: expired.Next}))
		require.Empty(t, p.Events)
		id := b.publish("")
		require.Equal(t, []string{id}, ids(b.page(at(feed.Query{After: expired.Next}))))
		b.page(at(feed.Query{After: p.Next}))
		b.prune()
		_, err = b.reader.Page(t.Context(), at(feed.Query{After: expired.Next}))
		require.ErrorIs(t, err, feed.ErrExpired, "what was pruned since")
	}
	// A reader may always begin anew, and go on from there.
	p := b.page(at(feed.Query{}))
	require.Empty(t, b.page(at(feed.Query{After: p.Next})).Events)
}

// A reader who knows that events were pruned can read the events that were kept between
// them.
func TestKeptBelowPruned(t *testing.T) {
	b := newBed(t, nil)
	old := b.page(feed.Query{Viewer: sender.Operator}).Next
	b.keep()
	kept := b.publishKept()
	b.publish("")
	alsoKept := b.publishKept()
	b.prune()
	p := b.page(feed.Query{Viewer: sender.Operator, Limit: 1})
	require.Equal(t, []string{kept}, ids(p))
	require.Equal(t, []string{alsoKept}, ids(b.page(feed.Query{Viewer: sender.Operator, After: p.Next})), "the cursor before what was pruned, of who began after it")
	_, err := b.reader.Page(t.Context(), feed.Query{Viewer: sender.Operator, After: old})
	var expired *feed.ExpiredError
	require.ErrorAs(t, err, &expired)
	p = b.page(feed.Query{Viewer: sender.Operator, After: expired.Next, Limit: 1})
	require.Equal(t, []string{kept}, ids(p), "it goes on after what was read")
	require.Equal(t, []string{alsoKept}, ids(b.page(feed.Query{Viewer: sender.Operator, After: p.Next})))
}

func TestCursorAhead(t *testing.T) {
	b := newBed(t, nil)
	b.publish("")
	b.publish("")
	later := b.page(feed.Query{Viewer: sender.Operator}).Next
	restored := newBed(t, nil)
	first := restored.publish("")
	_, err := restored.reader.Page(t.Context(), feed.Query{Viewer: sender.Operator, After: later})
	var expired *feed.ExpiredError
	require.ErrorAs(t, err, &expired)
	require.True(t, expired.Ahead)
	require.Equal(t, []string{first}, ids(restored.page(feed.Query{Viewer: sender.Operator, After: expired.Next})))
}

func TestInvalidQueries(t *testing.T) {
	b := newBed(t, nil)
	_, err := b.reader.Page(t.Context(), feed.Query{After: "x", Limit: 201, Wait: -1})
	require.ErrorIs(t, err, sender.ErrInvalid)
	for _, part := range []string{"viewer", "cursor", "limit 201", "wait of -1ns"} {
		require.ErrorContains(t, err, part, "all at once")
	}
	_, err = b.reader.Page(t.Context(), feed.Query{Viewer: "sub_unknown"})
	require.ErrorIs(t, err, sender.ErrNotFound)
	_, err = b.reader.Page(t.Context(), feed.Query{Viewer: sender.Operator, Wait: feed.MaxWait + 1})
	require.ErrorIs(t, err, sender.ErrInvalid)
	require.Zero(t, b.spy.heads.Load())
}

func TestEvent(t *testing.T) {
	b := newBed(t, nil, "sub_a", "sub_b")
	id := b.publish("sub_a")
	e, err := b.reader.Event(t.Context(), "sub_a", id)
	require.NoError(t, err)
	require.Equal(t, id, e.ID)
	require.Contains(t, string(e.Body), id)
	_, err = b.reader.Event(t.Context(), "sub_b", id)
	require.ErrorIs(t, err, sender.ErrNotFound)
	e, err = b.reader.Event(t.Context(), sender.Operator, id)
	require.NoError(t, err, "the operator sees all")
	require.Equal(t, id, e.ID)
	everyones := b.publish("")
	for viewer, want := range map[string]error{"sub_b": nil, "sub_unknown": sender.ErrNotFound, "": sender.ErrInvalid} {
		_, err = b.reader.Event(t.Context(), viewer, everyones)
		require.ErrorIs(t, err, want, viewer)
	}
}

// held is a store that answers only once it is let go.
type held struct {
	feed.Store
	asked chan struct{}
	let   chan struct{}
}

func (h *held) wait() {
	h.asked <- struct{}{}
	<-h.let
}

func (h *held) Feed(ctx context.Context, q feed.StoreQuery) (feed.StorePage, error) {
	h.wait()
	return h.Store.Feed(ctx, q)
}

func (h *held) Event(ctx context.Context, id string) (sender.StoredEvent, error) {
	h.wait()
	return h.Store.Event(ctx, id)
}

// An event that many want at once does not take all connections of the database, whether they
// read a page or the event alone.
func TestReads(t *testing.T) {
	const readers, most = 10, 3
	for name, read := range map[string]func(ctx context.Context, r *feed.Reader, id string) error{
		"pages": func(ctx context.Context, r *feed.Reader, _ string) error {
			_, err := r.Page(ctx, feed.Query{Viewer: sender.Operator})
			return err
		},
		"an event": func(ctx context.Context, r *feed.Reader, id string) error {
			_, err := r.Event(ctx, sender.Operator, id)
			return err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBed(t, nil)
			id := b.publish("")
			store := &held{b.store, make(chan struct{}, 10*readers), make(chan struct{})}
			reader, err := feed.NewReader(store, &feed.ReaderConfig{Reads: most})
			require.NoError(t, err)
			done := make(chan error, readers)
			for range readers {
				go func() { done <- read(t.Context(), reader, id) }()
			}
			synctest.Wait()
			asked := len(store.asked)
			close(store.let)
			for range readers {
				require.NoError(t, <-done, name)
			}
			require.Equal(t, most, asked, name)
		})
	}
}

func TestConstructors(t *testing.T) {
	_, err := feed.NewReader(nil, &feed.ReaderConfig{Poll: -1})
	require.ErrorContains(t, err, "needs a store")
	require.ErrorContains(t, err, "negative")
	_, err = feed.NewHandler(nil, nil, nil)
	require.ErrorContains(t, err, "needs a Reader")
	require.ErrorContains(t, err, "needs a ViewerFunc")
}

// Now is the place behind all that is there: also of what the viewer may not see, and of
// what was pruned.
func TestNow(t *testing.T) {
	b := newBed(t, nil, "sub_a", "sub_b")
	b.publish("")
	b.prune()
	b.publish("sub_a")
	b.publish("sub_b")
	p := b.page(feed.Query{Viewer: "sub_a", After: feed.Now})
	require.Empty(t, p.Events)
	next := b.publish("sub_a")
	for range 2 {
		require.Equal(t, []string{next}, ids(b.page(feed.Query{Viewer: "sub_a", After: p.Next})))
	}
	require.Empty(t, b.page(feed.Query{Viewer: "sub_a", After: feed.Now}).Events)
	_, err := b.reader.Page(t.Context(), feed.Query{Viewer: "sub_c", After: feed.Now})
	require.ErrorIs(t, err, sender.ErrNotFound)
}
