package postgres_test

import (
	"bytes"
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/postgres"
)

// deaf is a connection that stops reading after a number of bytes. To the server it
// looks like that of a stopped process.
type deaf struct {
	net.Conn
	read  *atomic.Int64
	most  int64
	heard chan struct{} // closed once that is so
	end   <-chan struct{}
}

func (c deaf) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if all := c.read.Add(int64(n)); all > c.most {
		if all-int64(n) <= c.most {
			close(c.heard)
		}
		<-c.end
	}
	return n, err
}

// largeDraft is an event with a body of a little more than n bytes.
func largeDraft(subscriber string, size int) sender.Draft {
	d := draft(subscriber)
	d.BodyTail = append(append([]byte(`,"data":"`), bytes.Repeat([]byte("x"), size)...), []byte(`"}`)...)
	return d
}

// A process that is stopped while it receives bodies stops no other process: by then it
// holds no lock that others need.
func TestStoppedWhileReadingBodies(t *testing.T) {
	t.Run("of what it has claimed", func(t *testing.T) { stoppedWhileReading(t, "", 80) })
	t.Run("for filters", func(t *testing.T) { stoppedWhileReading(t, `{"data":{"prefix":"x"}}`, 0) })
}

// stoppedWhileReading publishes 40 large events to two subscriptions, of which the stopped
// process claims some.
func stoppedWhileReading(t *testing.T, filter string, claimed int) {
	p := newPlace(t)
	s := p.store(t)
	register(t, s, 1, 2, sender.Settings{})
	p.exec(t, `UPDATE {}.surehook_subscriptions SET filter = '`+filter+`'`)
	end := make(chan struct{})
	slow := deaf{read: &atomic.Int64{}, most: 2 << 20, heard: make(chan struct{}), end: end}
	cfg, err := pgxpool.ParseConfig(pgtest.With(pgtest.DSN(t), "application_name", "deaf "+p.schema))
	require.NoError(t, err)
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		here := slow
		here.Conn = c
		return here, err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	stopped, err := postgres.New(pool, &postgres.Config{Schema: p.schema})
	require.NoError(t, err)
	var drafts []sender.Draft
	for range 40 {
		drafts = append(drafts, largeDraft(subscriberID(0), 900<<10))
	}
	require.NoError(t, publishInTx(t.Context(), s, drafts...))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for hears := true; hears; hears = slow.read.Load() <= slow.most {
			_, _, _ = stopped.Step(context.WithoutCancel(t.Context()), dispatch.ExpandParams{Events: 1024, Deliveries: 2048}, batchOf(nil, 1024))
		}
	}()
	t.Cleanup(func() {
		_, _ = p.pool.Exec(context.Background(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1`, "deaf "+p.schema)
		close(end)
		<-ended
		pool.Close()
	})
	<-slow.heard
	require.NoError(t, publishInTx(t.Context(), s, largeDraft(subscriberID(0), 1)))
	began := time.Now()
	got := 0
	for got < 82-claimed { // the new event too, to both subscriptions
		_, c, err := s.Step(t.Context(), dispatch.ExpandParams{Events: 1024, Deliveries: 2048}, batchOf(nil, 16))
		require.NoError(t, err)
		got += len(c.Claimed)
		require.Less(t, time.Since(began), 30*time.Second, "somebody else goes on long before the leases of the stopped one end")
	}
	require.Equal(t, claimed, p.count(t, `SELECT count(*) FROM {}.surehook_leases`)-got, "leases of the stopped one")
}

// An event that is redacted between a claim and its reading is not sent.
func TestRedactedJustBeforeItIsRead(t *testing.T) {
	p := newPlace(t)
	s := p.store(t)
	register(t, s, 1, 2, sender.Settings{})
	publish(t, s, 3, 1)
	expandAll(t, s)
	p.exec(t, `UPDATE {}.surehook_events SET body = '' WHERE no = (SELECT min(no) FROM {}.surehook_events)`)
	c := exchange(t, s, batchOf(nil, 10))
	require.Len(t, c.Claimed, 4)
	require.Equal(t, 2, p.count(t, `SELECT count(*) FROM {}.surehook_ended WHERE status = 'cancelled'`))
	require.Equal(t, 4, p.count(t, `SELECT count(*) FROM {}.surehook_leases`))
	exchange(t, s, batchOf(c.Claimed, 10))
	p.settled(t)
}

// A removed event is an error of its own deliveries alone.
func TestEventThatIsGone(t *testing.T) {
	p := newPlace(t)
	s := p.store(t)
	register(t, s, 1, 1, sender.Settings{})
	publish(t, s, 3, 1)
	expandAll(t, s)
	p.exec(t, `DELETE FROM {}.surehook_events WHERE no = (SELECT min(no) FROM {}.surehook_events)`)
	c := exchange(t, s, batchOf(nil, 10))
	require.Len(t, c.Claimed, 3)
	without := 0
	for _, cl := range c.Claimed {
		read, err := s.Payloads(t.Context(), []int64{cl.Key.Event})
		require.NoError(t, err)
		if cl.Body == nil {
			without++
			require.Empty(t, read)
		} else {
			require.Equal(t, cl.Body, read[cl.Key.Event].Body)
		}
	}
	require.Equal(t, 1, without)
}
