package feed_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/feed"
)

const poll = 100 * time.Millisecond

// answer is the result of a wait.
type answer struct {
	page feed.Page
	err  error
	took time.Duration
}

// waiting reads the page after a cursor, beside the test.
func (b *bed) waiting(ctx context.Context, viewer, after string, wait time.Duration) <-chan answer {
	answered := make(chan answer, 1)
	start := time.Now()
	go func() {
		p, err := b.reader.Page(ctx, feed.Query{Viewer: viewer, After: after, Wait: wait})
		answered <- answer{p, err, time.Since(start)}
	}()
	synctest.Wait()
	return answered
}

func TestWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, &feed.ReaderConfig{Poll: poll}, "sub_a", "sub_b")
		first := b.waiting(t.Context(), "sub_a", "", 10*time.Second)
		time.Sleep(3*time.Second + poll/2)
		b.publish("sub_b")
		time.Sleep(time.Second)
		synctest.Wait()
		require.Empty(t, first, "an event for somebody else wakes nobody")
		pages := b.spy.pages.Load()
		id := b.publish("sub_a")
		got := <-first
		require.NoError(t, got.err)
		require.Equal(t, []string{id}, ids(got.page))
		require.LessOrEqual(t, got.took, 4*time.Second+2*poll)
		require.Equal(t, pages+1, b.spy.pages.Load(), "one query for who was woken")

		// A wait in vain returns an empty page, and a cursor beyond the events of other
		// viewers.
		before := b.page(feed.Query{Viewer: "sub_a"}).Next
		empty := b.waiting(t.Context(), "sub_a", before, 5*time.Second)
		time.Sleep(time.Second)
		b.publish("sub_b")
		got = <-empty
		require.NoError(t, got.err)
		require.Empty(t, got.page.Events)
		require.Equal(t, 5*time.Second, got.took)
		require.Equal(t, b.page(feed.Query{Viewer: sender.Operator}).Next, got.page.Next)

		// The events are for everyone, and for the operator.
		all := []<-chan answer{
			b.waiting(t.Context(), "sub_a", got.page.Next, 10*time.Second), b.waiting(t.Context(), "sub_b", got.page.Next, 10*time.Second),
			b.waiting(t.Context(), sender.Operator, got.page.Next, 10*time.Second),
		}
		id = b.publish("")
		for _, one := range all {
			require.Equal(t, []string{id}, ids((<-one).page))
		}
		operator := b.waiting(t.Context(), sender.Operator, "", 0)
		require.NotEmpty(t, (<-operator).page.Events)
		operator = b.waiting(t.Context(), sender.Operator, b.page(feed.Query{Viewer: sender.Operator}).Next, 10*time.Second)
		id = b.publish("sub_a")
		require.Equal(t, []string{id}, ids((<-operator).page))
	})
}

// One query serves all waiting viewers, however many they are. The store is not asked while
// nobody waits.
func TestManyWaitAtTheCostOfOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients = 500
		subscribers := make([]string, clients)
		for i := range subscribers {
			subscribers[i] = fmt.Sprintf("sub_%d", i)
		}
		b := newBed(t, &feed.ReaderConfig{Poll: poll}, subscribers...)
		var all []<-chan answer
		for _, s := range subscribers {
			all = append(all, b.waiting(t.Context(), s, "", 20*time.Second))
		}
		require.Equal(t, int64(clients), b.spy.pages.Load(), "each has looked once")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.InDelta(t, 10*time.Second/poll, b.spy.heads.Load(), 1)
		require.Equal(t, int64(clients), b.spy.pages.Load())
		b.publish("sub_7")
		require.Len(t, (<-all[7]).page.Events, 1)
		require.Equal(t, int64(clients)+1, b.spy.pages.Load(), "the others have not looked")
		for i, one := range all {
			if i != 7 {
				require.Empty(t, (<-one).page.Events)
			}
		}
		heads := b.spy.heads.Load()
		time.Sleep(time.Minute)
		require.Equal(t, heads, b.spy.heads.Load(), "nobody waits")
	})
}

// An event that is committed at any moment around the beginning of a wait ends it.
func TestNothingIsMissedBetweenReadingAndWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, &feed.ReaderConfig{Poll: poll}, "sub_a", "sub_b")
		other := b.waiting(t.Context(), "sub_b", "", 30*time.Second) // this keeps the watch going
		after := b.page(feed.Query{Viewer: "sub_a"}).Next
		for range 50 {
			one := b.waiting(t.Context(), "sub_a", after, 25*time.Second)
			var publishing sync.WaitGroup
			publishing.Go(func() { b.publish("sub_a") })
			got := <-one
			require.Len(t, got.page.Events, 1)
			require.LessOrEqual(t, got.took, 2*poll)
			after = got.page.Next
			publishing.Wait()
		}
		require.Empty(t, (<-other).page.Events)
		// The event commits after the query, and the watch passes it before the wait
		// begins.
		other = b.waiting(t.Context(), "sub_b", "", 30*time.Second)
		var id string
		b.spy.afterPage = func() {
			b.spy.afterPage = nil
			id = b.publish("sub_a")
			time.Sleep(3 * poll)
		}
		got := <-b.waiting(t.Context(), "sub_a", after, 5*time.Second)
		require.Equal(t, []string{id}, ids(got.page))
		require.LessOrEqual(t, got.took, 4*poll)
		b.reader.Drain()
		<-other
	})
}

func TestWhoLeavesLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, &feed.ReaderConfig{Poll: poll}, "sub_a")
		ctx, leave := context.WithCancel(t.Context())
		first, second := b.waiting(ctx, "sub_a", "", 30*time.Second), b.waiting(ctx, "sub_a", "", 30*time.Second)
		leave()
		for _, one := range []<-chan answer{first, second} {
			got := <-one
			require.NoError(t, got.err)
			require.Zero(t, got.took)
			require.NotEmpty(t, got.page.Next)
		}
		synctest.Wait()
		heads := b.spy.heads.Load()
		time.Sleep(time.Minute)
		require.Equal(t, heads, b.spy.heads.Load(), "nobody asks for those who have left")
	})
}

func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, &feed.ReaderConfig{Poll: poll}, "sub_a")
		one := b.waiting(t.Context(), "sub_a", "", 30*time.Second)
		b.reader.Drain()
		b.reader.Drain()
		got := <-one
		require.NoError(t, got.err)
		require.Zero(t, got.took)
		require.Empty(t, got.page.Events)
		require.Zero(t, (<-b.waiting(t.Context(), "sub_a", got.page.Next, 30*time.Second)).took, "no wait begins any more")
		id := b.publish("")
		require.Equal(t, []string{id}, ids(b.page(feed.Query{Viewer: "sub_a", After: got.page.Next, Wait: time.Second})), "what is there is still read")
	})
}

// A failure of the database ends the wait with its error.
func TestWaitingOnBrokenStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, &feed.ReaderConfig{Poll: poll}, "sub_a")
		one := b.waiting(t.Context(), "sub_a", "", 30*time.Second)
		b.spy.broken.Store(true)
		got := <-one
		require.ErrorIs(t, got.err, errBroken)
		require.LessOrEqual(t, got.took, 2*poll)
		b.spy.broken.Store(false)
		one = b.waiting(t.Context(), "sub_a", "", 30*time.Second)
		id := b.publish("sub_a")
		require.Equal(t, []string{id}, ids((<-one).page))
	})
}
