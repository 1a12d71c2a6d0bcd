package sqlite_test

import (
	"context"
	"database/sql"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/race"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/sqlite"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// answers is an endpoint that is a little slow.
type answers struct{ took time.Duration }

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(a.took)
	return &http.Response{StatusCode: http.StatusNoContent, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// owners makes subscribers with secrets and a number of subscriptions each, and returns
// their ids. Their endpoints are for an UnguardedTransport.
func owners(t *testing.T, s *sqlite.Store, n, each int) (ids []string) {
	t.Helper()
	keys, err := replayKeys()
	require.NoError(t, err)
	reg, err := sender.NewRegistry(s, keys, &sender.RegistryConfig{Network: sender.Network{AllowPrivateNetworks: true}})
	require.NoError(t, err)
	for i := range n {
		id := "sub_" + strconv.Itoa(i)
		_, _, err = reg.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: id})
		require.NoError(t, err)
		for range each {
			_, err = reg.Subscribe(t.Context(), sender.NewSubscription{Subscriber: id, URL: "http://127.0.0.1:1/", EventTypes: []string{"subscriber.*"}})
			require.NoError(t, err)
		}
		ids = append(ids, id)
	}
	return ids
}

// A run that is stopped at any moment of its work leaves no lease behind, and reports
// no result as lost. Another writer is busy all the while, so many of the stops come
// while a step waits for it.
func TestStopLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	stops := 20
	if race.Enabled { // it makes SQLite many times slower
		stops = 5
	}
	ctx, p := t.Context(), path(t)
	db := open(t, p, fit)
	s := newStore(t, db, time.Now)
	keys, err := replayKeys()
	require.NoError(t, err)
	subscriber := owners(t, s, 1, 10)

	other := open(t, p, fit+"&_txlock=immediate")
	_, err = other.ExecContext(ctx, `CREATE TABLE business (n INTEGER PRIMARY KEY)`)
	require.NoError(t, err)
	done, wrote := make(chan struct{}), make(chan error, 1)
	go func() { wrote <- writeUntil(other, done) }()
	end := sync.OnceValue(func() error { close(done); return <-wrote })
	defer func() { require.NoError(t, end()) }()

	var recorded, lost atomic.Int64
	// On a busy machine a run may end before it has recorded anything, so there are more of
	// them until one has.
	for n := 0; n < stops || recorded.Load() == 0; n++ {
		publish(t, s, 300, 0, subscriber)
		d, err := dispatch.New(s, keys, &dispatch.Config{
			UnguardedTransport: answers{2 * time.Millisecond}, Logger: quiet,
			Hooks: dispatch.Hooks{Recorded: func(_ context.Context, r *dispatch.Recorded) {
				recorded.Add(1)
				if r.Lost {
					lost.Add(1)
				}
			}},
		})
		require.NoError(t, err)
		run, cancel := context.WithTimeout(ctx, 20*time.Millisecond+rand.N(300*time.Millisecond))
		err = d.Run(run)
		cancel()
		require.NoError(t, err)
		require.Zero(t, count(t, db, `SELECT count(*) FROM surehook_leases`))
	}
	require.NoError(t, end())
	require.Zero(t, lost.Load())
	require.Positive(t, recorded.Load())
	require.EqualValues(t, recorded.Load(), count(t, db, `SELECT count(*) FROM surehook_attempts`))
}

// writeUntil holds one transaction of 5 ms after another, until done is closed. It does
// not take turns with the store, so on a slow machine its wait for the lock can time
// out. Then it begins anew, as an application does. The lock is free for a fifth of the time,
// however long the disk takes to commit: a store that asks for it now and then must find it
// free at last.
func writeUntil(db *sql.DB, done <-chan struct{}) error {
	var held time.Duration
	for {
		select {
		case <-done:
			return nil
		case <-time.After(max(time.Millisecond, held/4)):
		}
		held = 0
		tx, err := db.BeginTx(context.Background(), nil)
		if err != nil && strings.Contains(err.Error(), "SQLITE_BUSY") {
			continue
		}
		if err != nil {
			return err
		}
		begun := time.Now()
		if _, err = tx.ExecContext(context.Background(), `INSERT INTO business DEFAULT VALUES`); err == nil {
			time.Sleep(5 * time.Millisecond)
			err = tx.Commit()
		}
		held = time.Since(begun)
		if err != nil {
			_ = tx.Rollback()
			return err
		}
	}
}
