package kill_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/internal/killtest"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/internal/race"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/postgres"
	"github.com/surehook/surehook/sender/sqlite"
)

var (
	producingOnSQLite = killtest.NewChild("service on SQLite", func(ctx context.Context, path string) error {
		return producerOnSQLite(child{}, openSQLite(child{}, path), false).produce(ctx, 2, time.Millisecond, func() string { return "thing.made" })
	})
	producingOnPostgres = killtest.NewChild("service on PostgreSQL", func(ctx context.Context, at schema) error {
		p := producerOnPostgres(child{}, openPool(child{}, at), at, false, dispatch.Hooks{
			Recorded: func(_ context.Context, r *dispatch.Recorded) {
				if r.Lost {
					fmt.Printf(lateSaid+"\n", r.Event.ID, r.Result.Number)
				}
			},
		}, serviceHorizon)
		began := false
		return p.produce(ctx, 1, 20*time.Millisecond, func() string {
			if !began { // there is one however slow the machine is
				began = true
				return "thing.refused"
			}
			switch rand.IntN(50) {
			case 0:
				return "thing.refused"
			case 1, 2, 3, 4, 5:
				return heldType
			}
			return "thing.made"
		})
	})
)

// A process publishes and delivers. In the end no committed event is lost, no event that
// was rolled back was sent, and each event had one effect.
func TestService(t *testing.T) {
	t.Parallel()
	kills := 12
	if race.Enabled { // it makes SQLite many times slower
		kills = 6
	}
	kills = killsOr(t, kills)
	dir := t.TempDir()
	rcv := newEndpoint(t, filepath.Join(dir, "receiver.db"))
	path := filepath.Join(dir, "sender.db")
	db := openSQLite(t, path)
	producer := producerOnSQLite(t, db, true)
	_, secret, err := producer.registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	rcv.verifyWith(t, secret)
	_, err = producer.registry.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: rcv.server.URL})
	require.NoError(t, err)

	killtest.Run(t, killtest.Case{
		Child: func(int) *exec.Cmd { return producingOnSQLite.Command(path) }, Rounds: kills,
		Point:  killtest.Lines(2, 60),
		Within: 20 * time.Millisecond,
	})
	producer.finish(t)

	intact(t, db)
	committed := column(t, db, "SELECT id FROM things ORDER BY id")
	require.Greater(t, len(committed), kills, "the processes had time to work")
	require.Equal(t, committed, column(t, rcv.db, "SELECT thing FROM effects ORDER BY thing"), "each that committed had one effect, and none that was rolled back")
	require.Empty(t, column(t, db, "SELECT id FROM things WHERE id LIKE 'undone%'"))
	posted := rcv.posted()
	interrupted := 0
	deliveries := producer.deliveries(t)
	for _, d := range deliveries {
		require.Equal(t, sender.StatusDelivered, d.Status)
		interrupted += requireKept(t, d, posted[d.Event.ID])
	}
	require.Len(t, deliveries, len(committed))
	require.Len(t, posted, len(deliveries), "nothing else was posted")
	require.Positive(t, interrupted, "processes died with attempts in flight")
	t.Logf("%d events, %d attempts interrupted", len(deliveries), interrupted)
}

// producerOnSQLite opens the producer's part. migrate says whether it must make the tables.
func producerOnSQLite(t testing.TB, db *sql.DB, migrate bool) *producer[*sql.Tx] {
	store, err := sqlite.New(db, nil)
	require.NoError(t, err)
	if migrate {
		require.NoError(t, store.Migrate(t.Context()))
		_, err := db.ExecContext(t.Context(), "CREATE TABLE things (id TEXT PRIMARY KEY)")
		require.NoError(t, err)
	}
	schedule, err := backoff.Fixed(50 * time.Millisecond)
	require.NoError(t, err)
	return newProducer(t, store, dispatch.Config{
		Timeout: time.Second, Lease: 3 * time.Second, Policy: dispatch.Policy{Backoff: backoff.Policy{Schedule: schedule}},
	}, func(ctx context.Context, tx *sql.Tx, thing string) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO things VALUES (?)", thing)
		return err
	})
}

const (
	serviceLease = 1200 * time.Millisecond

	// A delivery that is refused for so long is a dead letter. On a slow machine one that is not
	// refused can be one, too.
	serviceHorizon = 8 * time.Second
	noHorizon      = 0 // that of the library
)

func producerOnPostgres(t testing.TB, pool *pgxpool.Pool, at schema, migrate bool, hooks dispatch.Hooks, horizon time.Duration) *producer[pgx.Tx] {
	store, err := postgres.New(pool, &postgres.Config{Schema: at.Name})
	require.NoError(t, err)
	if migrate {
		require.NoError(t, store.Migrate(t.Context()))
		_, err := pool.Exec(t.Context(), "CREATE TABLE things (id text PRIMARY KEY, refused boolean NOT NULL)")
		require.NoError(t, err)
	}
	schedule, err := backoff.Fixed(100 * time.Millisecond)
	require.NoError(t, err)
	return newProducer(t, store, dispatch.Config{
		Timeout: serviceLease / 3, Lease: serviceLease, Hooks: hooks,
		UserAgent: pool.Config().ConnConfig.RuntimeParams["application_name"], // see nameOf
		Policy:    dispatch.Policy{Backoff: backoff.Policy{Schedule: schedule, Horizon: horizon}, DisableAfter: -1},
	}, func(ctx context.Context, tx pgx.Tx, thing string) error {
		_, err := tx.Exec(ctx, "INSERT INTO things VALUES ($1, $2)", thing, strings.Contains(thing, "refused"))
		return err
	})
}

// named gives a process's connections its number: see nameOf.
func (s schema) named(n int) schema {
	return schema{pgtest.With(s.URL, "application_name", nameOf(n), "pool_max_conns", "8"), s.Name}
}

func nameOf(n int) string { return fmt.Sprint("process ", n) }

// lateSaid is printed for a result that came too late.
const lateSaid = "late: %s %d"
