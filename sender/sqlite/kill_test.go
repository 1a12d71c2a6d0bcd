package sqlite_test

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/takeovertest"
	"github.com/surehook/surehook/sender/sqlite"
)

const killedFile = "SUREHOOK_TEST_KILLED_FILE"

// TestMain lets tests run this program as the processes that are killed, or stopped.
func TestMain(m *testing.M) {
	takeovertest.Child(func(p string) (sender.DispatchStore, error) {
		db, err := sql.Open("sqlite", "file:"+p+"?"+fit)
		if err != nil {
			return nil, err
		}
		return sqlite.New(db, nil)
	})
	if p := os.Getenv(killedFile); p != "" {
		panic(publishAndDeliver(p))
	}
	if p := os.Getenv(replayingFile); p != "" {
		panic(dispatch(p))
	}
	os.Exit(m.Run())
}

// publishAndDeliver goes on until it is killed.
func publishAndDeliver(p string) error {
	ctx := context.Background()
	db, err := sql.Open("sqlite", "file:"+p+"?"+fit)
	if err != nil {
		return err
	}
	s, err := sqlite.New(db, nil)
	if err != nil {
		return err
	}
	var claimed []sender.Claimed
	for n := 0; ; n++ {
		if err := s.InTx(ctx, func(tx *sql.Tx) error {
			for range 3 {
				d := draft("sub_0", 0)
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
		if _, err := s.Expand(ctx, sender.ExpandParams{Events: 10, Deliveries: 10}); err != nil {
			return err
		}
		b := batchOf(claimed, 10)
		b.Decide = someFail
		b.Claim.Lease = 20 * time.Millisecond // the next process finds lost ones
		for i := range b.Results {
			if b.Results[i].Key.Event%4 == 0 {
				b.Results[i].StatusCode, b.Results[i].Class = 500, sender.ClassStatus
			}
		}
		c, err := s.RecordAndClaim(ctx, b)
		if err != nil {
			return err
		}
		if claimed = c.Claimed; n == 2 { // may be killed from now on
			if _, err := os.Stdout.WriteString("begun\n"); err != nil {
				return err
			}
		}
	}
}

// someFail gives up after three tries, so that there is every kind of state.
func someFail(l sender.Live, h sender.Health, r sender.Result, now time.Time) sender.Decision {
	switch {
	case r.Class == sender.ClassNone:
		return sender.Decision{Status: sender.StatusDelivered, Health: h}
	case l.Tries >= 3 && r.Class != sender.ClassInterrupted:
		return sender.Decision{Status: sender.StatusDeadLettered, Health: h}
	}
	return sender.Decision{Status: sender.StatusAwaitingRetry, Due: now.Add(5 * time.Millisecond), Health: h}
}

// A process that is killed at any moment loses no committed event, sends none that it
// has not committed, and neither doubles nor loses a delivery.
func TestKilled(t *testing.T) {
	const kills = 12
	p := path(t)
	setUp := open(t, p, fit)
	s := newStore(t, setUp, time.Now)
	register(t, s, 1)
	_, err := setUp.ExecContext(t.Context(), `CREATE TABLE business (event TEXT PRIMARY KEY)`)
	require.NoError(t, err)
	require.NoError(t, setUp.Close()) // so that each process finds only the state of the one before
	for range kills {
		killOne(t, p)
	}

	db := open(t, p, fit)
	var result string
	require.NoError(t, db.QueryRowContext(t.Context(), `PRAGMA integrity_check`).Scan(&result))
	require.Equal(t, "ok", result)
	committed := count(t, db, `SELECT count(*) FROM business`)
	require.GreaterOrEqual(t, committed, 9*kills, "all that was committed before each kill")
	require.Equal(t, committed, count(t, db, `SELECT count(*) FROM surehook_events`))
	require.Equal(t, committed, count(t, db, `SELECT count(*) FROM business b JOIN surehook_events e ON e.id = b.event`))
	require.NotZero(t, count(t, db, `SELECT count(*) FROM surehook_attempts WHERE class = 'interrupted'`), "kills between a claim and its result")

	clock := newClock()
	clock.micros.Store(time.Now().UnixMicro())
	s, err = sqlite.New(db, &sqlite.Config{Now: clock.now})
	require.NoError(t, err)
	expandAll(t, s)
	oneStateEach(t, db)

	// Nothing is overlooked: all deliveries end.
	var claimed []sender.Claimed
	for range 10 * committed {
		clock.advance(time.Second)
		b := batchOf(claimed, 100)
		b.Decide = someFail
		c, err := s.RecordAndClaim(t.Context(), b)
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

func killOne(t *testing.T, p string) {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), killedFile+"="+p)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = out.Read(make([]byte, 8))
	// The pause waits for nothing: it varies the moment of the kill.
	<-time.After(rand.N(60 * time.Millisecond))
	_ = cmd.Process.Kill()
	require.ErrorContains(t, cmd.Wait(), "signal: killed", said.String())
	require.NoError(t, err)
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
