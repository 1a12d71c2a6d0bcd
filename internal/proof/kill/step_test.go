package kill_test

import (
	"context"
	"database/sql"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/killtest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/sqlite"
)

// stepping publishes, expands, records and claims by turns, and prints a line each time.
var stepping = killtest.NewChild("steps on SQLite", func(ctx context.Context, path string) error {
	db := openDeferred(child{}, path)
	s, err := sqlite.New(db, nil)
	if err != nil {
		return err
	}
	var claimed []dispatch.Claimed
	for token := int64(1); ; token++ {
		if err := s.InTx(ctx, func(tx *sql.Tx) error {
			for range 3 {
				d := draft("sub_0")
				if _, err := tx.ExecContext(ctx, `INSERT INTO business (event) VALUES (?)`, d.ID); err != nil {
					return err
				}
				if _, err := s.PublishTx(ctx, tx, []sender.Draft{d}); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
		if _, _, err := s.Step(ctx, dispatch.ExpandParams{Events: 10, Deliveries: 10}, dispatch.Batch{}); err != nil {
			return err
		}
		b := batchOf(claimed, token, 10)
		b.Claim.Lease = 20 * time.Millisecond // the next process finds lost ones
		for i := range b.Results {
			if b.Results[i].Key.Event%4 == 0 {
				b.Results[i].StatusCode, b.Results[i].Class = 500, sender.ClassStatus
			}
		}
		_, c, err := s.Step(ctx, dispatch.ExpandParams{}, b)
		if err != nil {
			return err
		}
		claimed = c.Claimed
		fmt.Println("a step")
	}
})

// batchOf records that these claimed deliveries have succeeded, and claims others.
func batchOf(claimed []dispatch.Claimed, token int64, slots int) dispatch.Batch {
	b := dispatch.Batch{Decide: someFail}
	b.Claim.Lease, b.Claim.Token = time.Minute, token
	for lane := range b.Claim.Lanes {
		b.Claim.Lanes[lane] = dispatch.LaneParams{Slots: slots, PerSubscriber: slots, PerSubscription: slots}
	}
	for i := range claimed {
		c := &claimed[i]
		b.Results = append(b.Results, dispatch.Result{
			Key: c.Key, Token: c.Token, Number: c.Number, StartedAt: c.At, Duration: 5 * time.Millisecond, StatusCode: 204,
		})
	}
	return b
}

// someFail gives up after three tries, so that there is every kind of state.
func someFail(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
	switch {
	case r.Class == sender.ClassNone:
		return dispatch.Decision{Status: sender.StatusDelivered, Health: h}
	case l.Tries >= 3 && r.Class != sender.ClassInterrupted:
		return dispatch.Decision{Status: sender.StatusDeadLettered, Health: h}
	}
	return dispatch.Decision{Status: sender.StatusAwaitingRetry, Due: now.Add(5 * time.Millisecond), Health: h}
}

// No committed event is lost, no other event is sent, and no delivery is doubled or lost.
func TestSteps(t *testing.T) {
	t.Parallel()
	const kills, least = 12, 3
	path := filepath.Join(t.TempDir(), "a.db")
	setUp := openDeferred(t, path)
	s, err := sqlite.New(setUp, nil)
	require.NoError(t, err)
	require.NoError(t, s.Migrate(t.Context()))
	require.NoError(t, s.InTx(t.Context(), func(tx *sql.Tx) error {
		if err := s.CreateSubscriberTx(t.Context(), tx, sender.Subscriber{ID: "sub_0"}, nil); err != nil {
			return err
		}
		return s.CreateSubscriptionTx(t.Context(), tx, sender.Subscription{ID: "wsub_0", Subscriber: "sub_0", URL: "https://example.com/", EventTypes: []string{"*"}})
	}))
	_, err = setUp.ExecContext(t.Context(), `CREATE TABLE business (event TEXT PRIMARY KEY)`)
	require.NoError(t, err)
	require.NoError(t, setUp.Close()) // so that each process finds only the state of the process before it
	killtest.Run(t, killtest.Case{
		Child: func(int) *exec.Cmd { return stepping.Command(path) }, Rounds: kills,
		Point:  killtest.Lines(least, least),
		Within: 60 * time.Millisecond,
	})

	db := openDeferred(t, path)
	intact(t, db)
	committed := count(t, db, `SELECT count(*) FROM business`)
	require.GreaterOrEqual(t, committed, 3*least*kills, "all that was committed before each kill")
	require.Equal(t, committed, count(t, db, `SELECT count(*) FROM surehook_events`))
	require.Equal(t, committed, count(t, db, `SELECT count(*) FROM business b JOIN surehook_events e ON e.id = b.event`))
	require.NotZero(t, count(t, db, `SELECT count(*) FROM surehook_attempts WHERE class = 'interrupted'`), "kills between a claim and its result")

	var micros atomic.Int64
	micros.Store(time.Now().UnixMicro())
	s, err = sqlite.New(db, &sqlite.Config{Now: func() time.Time { return time.UnixMicro(micros.Load()) }})
	require.NoError(t, err)
	expandAll(t, s)
	oneStateEach(t, db)

	// Nothing is overlooked: all deliveries end.
	var claimed []dispatch.Claimed
	for token := range 10 * committed {
		micros.Add(time.Second.Microseconds())
		_, c, err := s.Step(t.Context(), dispatch.ExpandParams{}, batchOf(claimed, int64(1_000_000+token), 100))
		require.NoError(t, err)
		if claimed = c.Claimed; len(claimed) == 0 && c.NextDue.IsZero() {
			break
		}
	}
	for _, table := range []string{"pending", "leases", "waiting"} {
		require.Zero(t, count(t, db, `SELECT count(*) FROM surehook_`+table), table)
	}
	oneStateEach(t, db)
}

// oneStateEach checks that an event's only delivery is in one table of four, or
// delivered, and that its attempts are numbered from 1 on.
func oneStateEach(t *testing.T, db *sql.DB) {
	t.Helper()
	require.Zero(t, count(t, db, `SELECT count(*) FROM surehook_events e WHERE 1 <>
		(SELECT count(*) FROM surehook_pending WHERE event = e.seq) + (SELECT count(*) FROM surehook_leases WHERE event = e.seq) +
		(SELECT count(*) FROM surehook_waiting WHERE event = e.seq) + (SELECT count(*) FROM surehook_ended WHERE event = e.seq) +
		(SELECT count(*) FROM surehook_attempts WHERE event = e.seq AND class = '')`), "events whose delivery is in none or several states")
	require.Zero(t, count(t, db, `SELECT count(*) FROM (SELECT 1 FROM surehook_attempts GROUP BY event, subscription HAVING max(number) <> count(*))`),
		"deliveries with an attempt missing")
}
