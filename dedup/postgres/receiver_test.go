package postgres_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/postgres"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/signing"
)

const scope = "test"

// bed is a migrated schema with a table for effects.
type bed struct {
	schema string
	pool   *pgxpool.Pool
	store  *postgres.Store[pgx.Tx]
	secret signing.Secret
}

func newBed(t testing.TB, settings ...string) bed {
	t.Helper()
	cfg := newSchema(t)
	pool := openPool(t, append(settings, "search_path", cfg.Schema)...)
	_, err := pool.Exec(context.Background(), "CREATE TABLE effects (id text NOT NULL)")
	require.NoError(t, err)
	return bed{cfg.Schema, pool, newPgx(t, cfg), signing.GenerateSecret()}
}

func (b bed) receiver(t testing.TB, inTx receiver.InTx[pgx.Tx], store dedup.Store[pgx.Tx]) *receiver.Receiver[pgx.Tx] {
	t.Helper()
	keys, err := signing.NewKeyring(signing.Key{ID: "test", Secret: b.secret})
	require.NoError(t, err)
	verifier, err := signing.NewVerifier(keys, nil)
	require.NoError(t, err)
	rcv, err := receiver.New(verifier, inTx, store, scope, &receiver.Config{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return rcv
}

func (b bed) effect(ctx context.Context, tx pgx.Tx, ev receiver.Event) error {
	_, err := tx.Exec(ctx, "INSERT INTO effects (id) VALUES ($1)", ev.ID)
	return err
}

func (b bed) count(t testing.TB, table string) (n int) {
	t.Helper()
	require.NoError(t, b.pool.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&n))
	return n
}

// 64 receivers, like as many processes, get the same event at once.
func TestReceiverConcurrentDuplicates(t *testing.T) {
	for _, level := range []string{"read committed", "repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			const n = 64
			b := newBed(t, "default_transaction_isolation", level)
			handlers := make(chan http.Handler, n)
			for range n {
				handlers <- b.receiver(t, inPgx(b.pool), b.store).Handler(receiver.State(b.effect))
			}
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				h := <-handlers
				h.ServeHTTP(w, r)
				handlers <- h
			}))
			defer srv.Close()
			snd := receivertest.NewSender(t, b.secret, nil)
			req := snd.Request(receivertest.NewEvent("subscriber", "sub_1", 1))
			var wg sync.WaitGroup
			start := make(chan struct{})
			answers, errs := make([]receivertest.Answer, n), make([]error, n)
			for i := range n {
				wg.Go(func() {
					<-start
					// A sender comes again after a 503.
					for answers[i].Status == 0 || answers[i].Status == http.StatusServiceUnavailable {
						if answers[i], errs[i] = req.Post(t.Context(), srv.URL); errs[i] != nil {
							return
						}
					}
				})
			}
			close(start)
			wg.Wait()
			results := map[receiver.Result]int{}
			for i, a := range answers {
				require.NoError(t, errs[i])
				require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
				results[a.Result]++
			}
			require.Equal(t, map[receiver.Result]int{receiver.Applied: 1, receiver.Duplicate: n - 1}, results)
			require.Equal(t, 1, b.count(t, "effects"))
			require.Equal(t, 1, b.count(t, "surehook_dedup_markers"))
		})
	}
}

// If a transaction holds the marker for too long, the others answer 503, and nothing worse
// happens.
func TestReceiverLockWait(t *testing.T) {
	ctx := t.Context()
	b := newBed(t, "lock_timeout", "5")
	rcv := b.receiver(t, inPgx(b.pool), b.store)
	h := rcv.Handler(receiver.State(b.effect))
	ev := receivertest.NewEvent("subscriber", "sub_1", 1)
	snd := receivertest.NewSender(t, b.secret, nil)

	holder := begin(t, b.pool)
	fresh, err := b.store.Mark(ctx, holder, scope, ev.ID, time.Now())
	require.NoError(t, err)
	require.True(t, fresh)
	a := snd.Request(ev).Serve(h)
	require.Equal(t, http.StatusServiceUnavailable, a.Status)
	require.Equal(t, "5", a.Header.Get("Retry-After"))
	_, err = rcv.Receive(ctx, snd.Request(ev).Message(), receiver.State(b.effect))
	var failure *receiver.Error
	require.ErrorAs(t, err, &failure)
	require.Equal(t, receiver.ReasonConflict, failure.Reason)
	require.NoError(t, holder.Rollback(ctx))

	require.Equal(t, receiver.Applied, snd.Request(ev).Serve(h).Result)
	require.Equal(t, 1, b.count(t, "effects"))
}

// A transaction with a serialization failure is run again. If the failure persists, the
// answer is 503.
func TestReceiverSerializationFailure(t *testing.T) {
	b := newBed(t)
	var runs, losses atomic.Int64
	obj := dedup.Object{Type: "subscriber", ID: "sub_1"}
	// Another transaction advances the object's version after this one has taken its
	// snapshot, as often as losses says.
	inTx := func(ctx context.Context, fn func(pgx.Tx) error) error {
		return pgx.BeginTxFunc(ctx, b.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
			run := runs.Add(1)
			if _, err := b.store.Version(ctx, tx, scope, obj); err != nil {
				return err
			}
			if run <= losses.Load() {
				if err := inPgx(b.pool)(ctx, func(other pgx.Tx) error {
					_, err := b.store.Advance(ctx, other, scope, obj, run)
					return err
				}); err != nil {
					return err
				}
			}
			return fn(tx)
		})
	}
	h := b.receiver(t, inTx, b.store).Handler(receiver.State(b.effect))
	snd := receivertest.NewSender(t, b.secret, nil)
	ev := receivertest.NewEvent("subscriber", "sub_1", 100)

	losses.Store(1000)
	a := snd.Request(ev).Serve(h)
	require.Equal(t, http.StatusServiceUnavailable, a.Status)
	require.Equal(t, "5", a.Header.Get("Retry-After"))
	require.EqualValues(t, 4, runs.Load())
	require.Zero(t, b.count(t, "effects"))
	require.Zero(t, b.count(t, "surehook_dedup_markers"))

	losses.Store(runs.Load() + 2)
	require.Equal(t, receiver.Applied, snd.Request(ev).Serve(h).Result)
	require.EqualValues(t, 7, runs.Load())
	require.Equal(t, 1, b.count(t, "effects"))
}

// If a connection ends within the transaction, the failure is the database's and not the
// application's, and nothing is left.
func TestReceiverLosesItsConnection(t *testing.T) {
	b := newBed(t)
	snd := receivertest.NewSender(t, b.secret, nil)
	ev := receivertest.NewEvent("subscriber", "sub_1", 1)
	h := b.receiver(t, inPgx(b.pool), b.store).Handler(receiver.State(func(ctx context.Context, tx pgx.Tx, ev receiver.Event) error {
		if err := b.effect(ctx, tx, ev); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "SELECT pg_terminate_backend(pg_backend_pid())"); err != nil {
			return fmt.Errorf("applying: %w", receiver.Permanent(err))
		}
		return nil
	}))
	require.Equal(t, http.StatusServiceUnavailable, snd.Request(ev).Serve(h).Status)
	require.Zero(t, b.count(t, "effects"))
	require.Zero(t, b.count(t, "surehook_dedup_markers"))
	require.Equal(t, receiver.Applied, snd.Request(ev).Serve(b.receiver(t, inPgx(b.pool), b.store).Handler(receiver.State(b.effect))).Result)
}

// awaitWaiting returns when n transactions wait for another one's lock.
func (b bed) awaitWaiting(ctx context.Context, n int) error {
	for {
		var waiting int
		if err := b.pool.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity
			WHERE wait_event_type = 'Lock' AND query LIKE '%' || $1 || '%'`, b.schema).Scan(&waiting); err != nil || waiting == n {
			return err
		}
	}
}

// An event that is set aside is applied again by hand, once, even if others try too.
func TestReceiverDeadLetter(t *testing.T) {
	ctx := t.Context()
	b := newBed(t)
	snd := receivertest.NewSender(t, b.secret, nil)
	ev := receivertest.NewEvent("subscriber", "sub_1", 1)
	rcv := b.receiver(t, inPgx(b.pool), b.store)
	refuse := rcv.Handler(receiver.State(func(context.Context, pgx.Tx, receiver.Event) error {
		return receiver.Permanent(fmt.Errorf("no such plan: %q\x00", "gold"))
	}))
	require.Equal(t, receiver.DeadLettered, snd.Request(ev).Serve(refuse).Result)
	require.Equal(t, receiver.Duplicate, snd.Request(ev).Serve(refuse).Result)

	const n = 8
	apply := func(ctx context.Context, tx pgx.Tx, ev receiver.Event) error {
		if err := b.awaitWaiting(ctx, n-1); err != nil { // all have read the dead letter by then
			return err
		}
		return b.effect(ctx, tx, ev)
	}
	var wg sync.WaitGroup
	results, errs := make([]receiver.Result, n), make([]error, n)
	for i := range n {
		other := b.receiver(t, inPgx(b.pool), b.store)
		wg.Go(func() { results[i], errs[i] = other.ApplyDeadLetter(ctx, scope, ev.ID, receiver.State(apply)) })
	}
	wg.Wait()
	applied := 0
	for i := range n {
		if errs[i] == nil {
			require.Equal(t, receiver.Applied, results[i])
			applied++
			continue
		}
		require.ErrorIs(t, errs[i], dedup.ErrNotFound)
	}
	require.Equal(t, 1, applied)
	require.Equal(t, 1, b.count(t, "effects"))
	require.Zero(t, b.count(t, "surehook_dedup_dead_letters"))
}
