package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/postgres"
)

// blocked returns once a statement of the place waits for a lock.
func (p *place) blocked(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		return p.count(t, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%' || $1 || '%'`, p.schema) > 0
	}, time.Minute, time.Millisecond)
}

// beside runs fn beside the test; the returned function waits for its error.
func beside(fn func() error) (end func() error) {
	done := make(chan error, 1)
	go func() { done <- fn() }()
	return func() error { return <-done }
}

// A decision that disables a subscription does not wait for a caller who is changing
// it: the next failure disables it.
func TestDisablingLeavesWhatSomebodyIsChanging(t *testing.T) {
	p := newPlace(t)
	s := p.frozen(t)
	register(t, s, 1, 1, sender.Settings{})
	publish(t, s, 2, 1)
	expandAll(t, s)
	claimed := exchange(t, s, batchOf(nil, 2)).Claimed
	require.Len(t, claimed, 2)
	fail := func(c dispatch.Claimed) dispatch.Outcome {
		t.Helper()
		b := batchOf([]dispatch.Claimed{c}, 0)
		b.Results[0].Class = sender.ClassStatus
		b.Decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
			d := dispatch.Policy{}.Decide(l, h, r, now)
			d.Disable = "it fails"
			return d
		}
		_, out, err := s.Step(soon(t), dispatch.ExpandParams{}, b)
		require.NoError(t, err)
		return out.Recorded[0]
	}
	tx := p.begin(t, pgx.ReadCommitted)
	require.NoError(t, s.UpdateSubscriptionTx(t.Context(), tx, sender.Subscription{ID: "wsub_0_0", URL: "https://example.com/", EventTypes: []string{"*"}}))
	require.Empty(t, fail(claimed[0]).Decision.Disable)
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, "it fails", fail(claimed[1]).Decision.Disable)
	require.Equal(t, 1, p.count(t, `SELECT count(*) FROM {}.surehook_subscriptions WHERE status = 'disabled'`))
}

// A subscription that is created while its subscriber is deleted is closed with the
// others, or not created.
func TestSubscriptionMadeWhileItsSubscriberIsDeleted(t *testing.T) {
	create := func(ctx context.Context, s *pgxStore, tx pgx.Tx) error {
		return s.CreateSubscriptionTx(ctx, tx, sender.Subscription{ID: "new", Subscriber: "sub_0", URL: "https://example.com/", EventTypes: []string{"*"}})
	}
	remove := func(ctx context.Context, s *pgxStore, tx pgx.Tx) error { return s.DeleteSubscriberTx(ctx, tx, "sub_0") }
	for name, c := range map[string]struct {
		first, second func(ctx context.Context, s *pgxStore, tx pgx.Tx) error
		err           error
		closing       int
	}{
		"made first":    {create, remove, nil, 2},
		"deleted first": {remove, create, sender.ErrNotFound, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			s := p.frozen(t)
			register(t, s, 1, 1, sender.Settings{})
			tx := p.begin(t, pgx.ReadCommitted)
			require.NoError(t, c.first(t.Context(), s, tx))
			end := beside(func() error {
				return s.InTx(t.Context(), func(tx pgx.Tx) error { return c.second(t.Context(), s, tx) })
			})
			p.blocked(t)
			require.NoError(t, tx.Commit(t.Context()))
			require.ErrorIs(t, end(), c.err)
			require.Equal(t, c.closing, p.count(t, `SELECT count(*) FROM {}.surehook_subscriptions WHERE status = 'closing'`))
			require.Zero(t, p.count(t, `SELECT count(*) FROM {}.surehook_subscriptions WHERE status <> 'closing'`))
		})
	}
}

// If two transactions change a subscription, the second waits for the first and builds
// on it. If its isolation level hides the first, it must be run again.
func TestChangesOfOneSubscriptionTakeTurns(t *testing.T) {
	for level, want := range map[pgx.TxIsoLevel]error{pgx.ReadCommitted: sender.ErrStatus, pgx.RepeatableRead: sender.ErrRetryTx, pgx.Serializable: sender.ErrRetryTx} {
		t.Run(string(level), func(t *testing.T) {
			p := newPlace(t)
			s := p.frozen(t)
			register(t, s, 1, 1, sender.Settings{})
			first, second := p.begin(t, level), p.begin(t, level)
			_, err := s.SubscriptionTx(t.Context(), second, sender.SubscriptionKey{ID: "wsub_0_0"}) // it has its snapshot
			require.NoError(t, err)
			require.NoError(t, s.HoldSubscriptionTx(t.Context(), first, "wsub_0_0", sender.SubscriptionDisabled, "by hand"))
			end := beside(func() error {
				return s.HoldSubscriptionTx(t.Context(), second, "wsub_0_0", sender.SubscriptionPaused, "")
			})
			p.blocked(t)
			require.NoError(t, first.Commit(t.Context()))
			require.ErrorIs(t, end(), want)
		})
	}
}

// A change that waits for another one keeps what that has changed.
func TestUpdatesOfOneSubscriptionKeepEachOther(t *testing.T) {
	p := newPlace(t)
	s := p.frozen(t)
	register(t, s, 1, 1, sender.Settings{})
	keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: make([]byte, 32)})
	require.NoError(t, err)
	registry, err := sender.NewRegistry(s, keys, nil)
	require.NoError(t, err)
	url, description := "https://example.com/new", "of another"
	tx := p.begin(t, pgx.ReadCommitted)
	_, err = registry.UpdateTx(t.Context(), tx, "wsub_0_0", sender.SubscriptionChange{URL: &url})
	require.NoError(t, err)
	end := beside(func() error {
		_, err := registry.Update(t.Context(), "wsub_0_0", sender.SubscriptionChange{Description: &description})
		return err
	})
	p.blocked(t)
	require.NoError(t, tx.Commit(t.Context()))
	require.NoError(t, end())
	got, err := registry.Subscription(t.Context(), "wsub_0_0")
	require.NoError(t, err)
	require.Equal(t, []string{url, description}, []string{got.URL, got.Description})
}

// To lift a limit frees the deliveries that it held back at once, also if the same
// transaction records a result.
func TestLiftedRateIsSeenWithAResult(t *testing.T) {
	p := newPlace(t)
	s := p.frozen(t)
	register(t, s, 1, 1, sender.Settings{Rate: 0.001})
	publish(t, s, 5, 1)
	expandAll(t, s)
	claimed := exchange(t, s, batchOf(nil, 10)).Claimed
	require.Len(t, claimed, 1)
	require.NoError(t, s.InTx(t.Context(), func(tx pgx.Tx) error {
		return s.UpdateSubscriptionTx(t.Context(), tx, sender.Subscription{ID: "wsub_0_0", URL: "https://example.com/", EventTypes: []string{"*"}})
	}))
	got := exchange(t, s, batchOf(claimed, 10)).Claimed
	if len(got) == 0 {
		got = exchange(t, s, batchOf(nil, 10)).Claimed
	}
	require.Len(t, got, 4)
}

// A claim skips a notice that another process is claiming.
func TestNoticesAreTakenByOne(t *testing.T) {
	p := newPlace(t)
	s := p.frozen(t)
	b := batchOf(nil, 1)
	for range 3 {
		b.Notices = append(b.Notices, sender.Notice{Kind: sender.NoticeNetwork, Subscriber: sender.Operator})
	}
	all := exchange(t, s, b).Notices
	require.Len(t, all, 3)
	tx := p.begin(t, pgx.ReadCommitted)
	_, err := tx.Exec(t.Context(), in(p.schema, `SELECT 1 FROM {}.surehook_notices WHERE id = $1 FOR UPDATE`), all[0].ID)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got, err := s.ClaimNotices(ctx, time.Minute, 2)
	require.NoError(t, err)
	require.Equal(t, []string{all[1].ID, all[2].ID}, []string{got[0].ID, got[1].ID})
}

// The name of a schema may need quotes, and may be empty for the search_path.
func TestSchemaOfTheRegistry(t *testing.T) {
	pool := openPool(t)
	for name, quoted := range map[string]bool{"Order_" + newid.New("", time.Now()): true, "select_" + newid.New("", time.Now()): false} {
		cfg, use := &postgres.Config{Schema: name}, pool
		if !quoted {
			_, err := pool.Exec(t.Context(), `CREATE SCHEMA "`+name+`"`)
			require.NoError(t, err)
			cfg, use = nil, openPool(t, "search_path", name)
		}
		t.Cleanup(func() { _, _ = pool.Exec(context.Background(), `DROP SCHEMA "`+name+`" CASCADE`) })
		s, err := postgres.New(use, cfg)
		require.NoError(t, err)
		require.NoError(t, s.Migrate(t.Context()))
		register(t, s, 1, 1, sender.Settings{})
		require.NoError(t, s.InTx(t.Context(), func(tx pgx.Tx) error {
			if err := s.HoldSubscriptionTx(t.Context(), tx, "wsub_0_0", sender.SubscriptionPaused, ""); err != nil {
				return err
			}
			if err := s.ResumeSubscriptionTx(t.Context(), tx, "wsub_0_0", sender.Resume{Since: time.Now(), NotBefore: time.Now()}); err != nil {
				return err
			}
			return s.DeleteSubscriberTx(t.Context(), tx, "sub_0")
		}))
	}
}

// An id that PostgreSQL cannot store is not found, and the caller's transaction goes
// on.
func TestWhatCanBeNoIDIsNotFound(t *testing.T) {
	p := newPlace(t)
	s := p.frozen(t)
	register(t, s, 1, 1, sender.Settings{})
	for _, id := range []string{"a\x00b", "\xff"} {
		require.NoError(t, s.InTx(t.Context(), func(tx pgx.Tx) error {
			ctx := t.Context()
			_, subscriber := s.SubscriberTx(ctx, tx, id)
			_, keyring := s.SubscriberKeyringTx(ctx, tx, id)
			_, keyrings := s.KeyringsTx(ctx, tx, "", id, 1)
			_, subscription := s.SubscriptionTx(ctx, tx, sender.SubscriptionKey{ID: id})
			_, subscriptions := s.SubscriptionsTx(ctx, tx, "", id, 1)
			for i, err := range []error{
				subscriber, keyring, keyrings, subscription, subscriptions,
				s.SetSecretsTx(ctx, tx, id, 1, nil), s.DeleteSubscriberTx(ctx, tx, id),
				s.CreateSubscriptionTx(ctx, tx, sender.Subscription{ID: "new", Subscriber: id}),
				s.UpdateSubscriptionTx(ctx, tx, sender.Subscription{ID: id}),
				s.HoldSubscriptionTx(ctx, tx, id, sender.SubscriptionPaused, ""), s.ResumeSubscriptionTx(ctx, tx, id, sender.Resume{}),
				s.CloseSubscriptionTx(ctx, tx, id), s.DeleteSubscriptionTx(ctx, tx, id),
			} {
				require.ErrorIs(t, err, sender.ErrNotFound, "%d", i)
			}
			own, err := s.SubscriptionsTx(ctx, tx, id, "", 1)
			require.Empty(t, own)
			return err
		}))
		_, err := s.AcknowledgeNotice(t.Context(), id, "")
		require.ErrorIs(t, err, sender.ErrNotFound)
		page, _, err := s.Notices(t.Context(), history.NoticeQuery{Subscriber: id})
		require.NoError(t, err)
		require.Empty(t, page)
	}
}
