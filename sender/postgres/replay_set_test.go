package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/postgres"
	"github.com/surehook/surehook/sender/replay"
)

// replaying is a schema with two processes, in which commits can be held up.
type replaying struct {
	t          *testing.T
	pool       *pgxpool.Pool // whose search_path is the schema
	one, other *postgres.Store[pgx.Tx]
	key        int64 // of the lock that holds up
}

func newReplaying(t *testing.T) *replaying {
	t.Helper()
	schema := newid.New("test_", time.Now())
	b := &replaying{t: t, pool: openPool(t, "search_path", schema), key: rand.Int64()}
	b.one, b.other = newStore(t, b.pool, schema), newStore(t, b.pool, schema)
	require.NoError(t, b.one.Migrate(t.Context()))
	t.Cleanup(func() { dropSchema(t, b.pool, schema) })
	b.exec(fmt.Sprintf(`CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM pg_advisory_xact_lock_shared(%d); RETURN NULL; END$$`, b.key))
	return b
}

func newStore(t testing.TB, pool *pgxpool.Pool, schema string) *postgres.Store[pgx.Tx] {
	t.Helper()
	s, err := postgres.New(pool, &postgres.Config{Schema: schema})
	require.NoError(t, err)
	return s
}

func dropSchema(t testing.TB, pool *pgxpool.Pool, schema string) {
	t.Helper()
	_, err := pool.Exec(context.Background(), `DROP SCHEMA "`+schema+`" CASCADE`)
	require.NoError(t, err)
}

func (b *replaying) exec(query string) {
	b.t.Helper()
	_, err := b.pool.Exec(b.t.Context(), query)
	require.NoError(b.t, err, query)
}

func (b *replaying) count(query string, args ...any) (n int) {
	b.t.Helper()
	require.NoError(b.t, b.pool.QueryRow(b.t.Context(), query, args...).Scan(&n), query)
	return n
}

// holdCommits holds up the transactions that insert certain rows just before they
// are committed, until it is told to let them go.
func (b *replaying) holdCommits(table, rows string) (release func()) {
	b.t.Helper()
	b.exec(`CREATE CONSTRAINT TRIGGER hold AFTER INSERT ON ` + table + ` DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (` + rows + `) EXECUTE FUNCTION hold()`)
	conn, err := pgx.Connect(b.t.Context(), pgtest.DSN(b.t))
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	_, err = conn.Exec(b.t.Context(), `SELECT pg_advisory_lock($1)`, b.key)
	require.NoError(b.t, err)
	return func() { _ = conn.Close(context.Background()) }
}

// held waits until a transaction is held up.
func (b *replaying) held() {
	b.t.Helper()
	b.eventually(`SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'advisory' AND (classid::bigint << 32) + objid::bigint = $1`, b.key)
}

// waitsFor waits until somebody waits for the lock of a table.
func (b *replaying) waitsFor(table string) {
	b.t.Helper()
	b.eventually(`SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'relation' AND relation = $1::text::regclass`, table)
}

func (b *replaying) eventually(query string, args ...any) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		n := 0
		return b.pool.QueryRow(context.Background(), query, args...).Scan(&n) == nil && n > 0
	}, time.Minute, time.Millisecond)
}

// Replays of delivered deliveries cost all that is recorded, so a subscriber does not get more of
// them by asking for several at the same moment.
func TestReplaysOfOneMoment(t *testing.T) {
	b := newReplaying(t)
	b.claimed(1)
	tx, err := b.pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = tx.Exec(t.Context(), `LOCK TABLE surehook_replay_late IN SHARE ROW EXCLUSIVE MODE`)
	require.NoError(t, err)
	created := make(chan error, 2)
	for _, store := range []*postgres.Store[pgx.Tx]{b.one, b.other} {
		go func() {
			_, err := store.CreateReplay(t.Context(), replay.Replay{Filter: replay.Filter{Status: sender.StatusDelivered, Subscriber: "sub_0"}}, replay.Bounds{Unfinished: 1})
			created <- err
		}()
	}
	b.eventually(`SELECT count(*) - 1 FROM pg_locks WHERE NOT granted AND locktype = 'relation' AND relation = 'surehook_replay_late'::regclass`)
	require.NoError(t, tx.Rollback(t.Context()))
	refused := errors.Join(<-created, <-created)
	require.ErrorIs(t, refused, sender.ErrStatus)
	require.Equal(t, 1, b.count(`SELECT count(*) FROM surehook_replays`))
}

// claimed publishes an event to each of n subscribers, and claims all.
func (b *replaying) claimed(n int) []dispatch.Claimed {
	b.t.Helper()
	ctx := b.t.Context()
	require.NoError(b.t, b.one.InTx(ctx, func(tx pgx.Tx) error {
		for i := range n {
			sub := sender.Subscription{ID: "wsub_" + strconv.Itoa(i), Subscriber: "sub_" + strconv.Itoa(i), URL: "https://example.com/", EventTypes: []string{"*"}}
			if err := b.one.CreateSubscriberTx(ctx, tx, sender.Subscriber{ID: sub.Subscriber}, nil); err != nil {
				return err
			}
			if err := b.one.CreateSubscriptionTx(ctx, tx, sub); err != nil {
				return err
			}
			if _, err := b.one.PublishTx(ctx, tx, []sender.Draft{replayDraft(sub.Subscriber)}); err != nil {
				return err
			}
		}
		return nil
	}))
	expandEvents(b.t, b.one)
	_, c, err := b.one.Step(ctx, dispatch.ExpandParams{}, dispatch.Batch{Decide: endNow, Claim: claims(n)})
	require.NoError(b.t, err)
	require.Len(b.t, c.Claimed, n)
	return c.Claimed
}

func claims(n int) dispatch.ClaimParams {
	p := dispatch.ClaimParams{Lease: time.Minute}
	for lane := range p.Lanes {
		p.Lanes[lane] = dispatch.LaneParams{Slots: n, PerSubscriber: n, PerSubscription: n}
	}
	return p
}

func replayDraft(subscriber string) sender.Draft {
	id := newid.New("evt_", time.Now())
	return sender.Draft{
		ID: id, Type: "subscriber.updated", Object: sender.Object{Type: "subscriber", ID: id}, Subscriber: subscriber,
		BodyHead: []byte(`{"id":"` + id + `","version":`), BodyTail: []byte(`}`),
	}
}

func expandEvents(t testing.TB, s *postgres.Store[pgx.Tx]) {
	t.Helper()
	for more := true; more; {
		x, _, err := s.Step(context.Background(), dispatch.ExpandParams{Events: 1000, Deliveries: 1000}, dispatch.Batch{})
		require.NoError(t, err)
		more = x.More || x.Events > 0
	}
}

// endNow ends each delivery by its first result.
func endNow(_ dispatch.Live, h sender.Health, r dispatch.Result, _ time.Time) dispatch.Decision {
	if r.Class == sender.ClassNone {
		return dispatch.Decision{Status: sender.StatusDelivered, Health: h}
	}
	return dispatch.Decision{Status: sender.StatusDeadLettered, Health: h}
}

// record records a result with an error's text.
func (b *replaying) record(s *postgres.Store[pgx.Tx], c dispatch.Claimed, class sender.Class, says string) error {
	_, out, err := s.Step(b.t.Context(), dispatch.ExpandParams{}, dispatch.Batch{Decide: endNow, Results: []dispatch.Result{{
		Key: c.Key, Token: c.Token, Number: c.Number, StartedAt: c.At, Duration: time.Millisecond, Class: class, Error: says,
	}}})
	if err == nil && (len(out.Recorded) != 1 || out.Recorded[0].Lost) {
		err = fmt.Errorf("the result of %v was lost", c.Key)
	}
	return err
}

// begin starts a call that is to be held up.
func (b *replaying) begin(do func() error) (end func()) {
	done := make(chan error, 1)
	go func() { done <- do() }()
	return func() {
		b.t.Helper()
		require.NoError(b.t, <-done)
	}
}

func (b *replaying) create(s *postgres.Store[pgx.Tx], status sender.Status) (replay.Replay, error) {
	return s.CreateReplay(b.t.Context(), replay.Replay{Filter: replay.Filter{Status: status}}, replay.Bounds{})
}

func (b *replaying) steps() dispatch.ReplayStep {
	b.t.Helper()
	s, err := b.one.StepReplays(b.t.Context(), 100, nil)
	require.NoError(b.t, err)
	require.Len(b.t, s.Finished, 1)
	return s
}

// Numbers are drawn before the commit. So CreateReplay waits for deliveries that are
// being dead-lettered, and they count as members.
func TestReplayIsCreatedAfterWhatIsBeingDeadLettered(t *testing.T) {
	b := newReplaying(t)
	c := b.claimed(3)
	release := b.holdCommits("surehook_attempts", `NEW.error = 'held'`)
	recorded := b.begin(func() error { return b.record(b.one, c[0], sender.ClassStatus, "held") })
	b.held()
	require.NoError(t, b.record(b.other, c[1], sender.ClassStatus, ""))
	created := b.begin(func() error { _, err := b.create(b.other, sender.StatusDeadLettered); return err })
	b.waitsFor("surehook_ended")
	release()
	recorded()
	created()
	require.NoError(t, b.record(b.one, c[2], sender.ClassStatus, ""))
	require.Equal(t, 2, b.count(`SELECT matched FROM surehook_replays`))
	require.Equal(t, 2, b.steps().Admitted)
	require.Equal(t, 1, b.count(`SELECT count(*) FROM surehook_ended WHERE subscription = $1`, c[2].Key.Subscription), "what was dead-lettered later")
}

// A dump is restored into a cluster that gives transactions other ids. So no lasting
// row is found by such an id: only events that are not expanded are, and the marks
// before them.
func TestWhatIsKeptKnowsNoTransactions(t *testing.T) {
	b := newReplaying(t)
	require.Zero(t, b.count(`SELECT count(*) FROM information_schema.columns WHERE table_schema = current_schema() AND udt_name IN ('xid', 'xid8', 'pg_snapshot')
		AND table_name NOT IN ('surehook_outbox', 'surehook_subscriptions', 'surehook_patterns', 'surehook_left')`))
}

// A recording that sees no replay has been committed when one is created.
func TestReplayIsCreatedAfterRecordingsThatDoNotSeeIt(t *testing.T) {
	b := newReplaying(t)
	c := b.claimed(1)
	release := b.holdCommits("surehook_attempts", `NEW.error = 'held'`)
	recorded := b.begin(func() error { return b.record(b.one, c[0], sender.ClassNone, "held") })
	b.held()
	created := b.begin(func() error {
		if _, err := b.create(b.other, sender.StatusDelivered); err != nil {
			return err
		}
		delivered := 0
		err := b.pool.QueryRow(t.Context(), `SELECT count(*) FROM surehook_attempts`).Scan(&delivered)
		if err == nil && delivered != 1 {
			return errors.New("a replay is created, and what it does not know of is not delivered yet")
		}
		return err
	})
	b.waitsFor("surehook_replay_late")
	release()
	recorded()
	created()
	require.Equal(t, 1, b.steps().Admitted, "delivered before the replay was created, although it was counted before that")
}

// A recording that comes while a replay is being created waits, and sees it.
func TestReplayIsSeenByRecordingsThatAreCommittedLater(t *testing.T) {
	b := newReplaying(t)
	c := b.claimed(1)
	release := b.holdCommits("surehook_replays", `true`)
	created := b.begin(func() error { _, err := b.create(b.one, sender.StatusDelivered); return err })
	b.held()
	recorded := b.begin(func() error { return b.record(b.other, c[0], sender.ClassNone, "") })
	b.waitsFor("surehook_replay_late")
	release()
	created()
	recorded()
	require.Zero(t, b.steps().Admitted, "delivered after the replay was created")
}

// If a recording adds rows for a replay that has ended meanwhile, the end of the next
// replay removes them.
func TestReplayForgetsWhatWasTooLateForIt(t *testing.T) {
	b := newReplaying(t)
	c := b.claimed(2)
	cancel := func(r replay.Replay) {
		_, err := b.other.SetReplayStatus(t.Context(), r.ID, replay.Cancelled)
		require.NoError(t, err)
	}
	const late = `SELECT count(*) FROM surehook_replay_late`
	older, err := b.create(b.other, sender.StatusDelivered)
	require.NoError(t, err)
	r, err := b.create(b.other, sender.StatusDelivered)
	require.NoError(t, err)
	require.NoError(t, b.record(b.other, c[0], sender.ClassNone, ""))
	require.Equal(t, 2, b.count(late), "one for each replay")
	release := b.holdCommits("surehook_attempts", `NEW.error = 'held'`)
	recorded := b.begin(func() error { return b.record(b.one, c[1], sender.ClassNone, "held") })
	b.held()
	cancel(r)
	require.Equal(t, 1, b.count(late), "after the end of one of them")
	release()
	recorded()
	require.Equal(t, 3, b.count(late), "after a recording that saw both")
	cancel(older)
	require.Zero(t, b.count(late), "after the end of both")
}

// A replay is not created while somebody vacuums the table that must be locked for it, and
// the error says so.
func TestReplaySaysWhoHoldsItsTable(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	s, err := postgres.New(openPool(t), &postgres.Config{Schema: p.schema})
	require.NoError(t, err)
	for status, table := range map[sender.Status]string{sender.StatusDeadLettered: "surehook_ended", sender.StatusDelivered: "surehook_replay_late"} {
		vacuum, err := p.pool.Begin(t.Context())
		require.NoError(t, err)
		_, err = vacuum.Exec(t.Context(), `LOCK TABLE `+p.schema+`.`+table+` IN SHARE UPDATE EXCLUSIVE MODE`) // as VACUUM does
		require.NoError(t, err)
		create := func() error {
			_, err := s.CreateReplay(t.Context(), replay.Replay{Filter: replay.Filter{Status: status}}, replay.Bounds{})
			return err
		}
		require.ErrorContains(t, create(), "another session holds the table "+table)
		require.NoError(t, vacuum.Rollback(t.Context()))
		require.NoError(t, create())
	}
}
