package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/postgres"
)

// The changes of a caller's transaction (events, and secrets that customers were given)
// are durable once it has committed, also if the server's setting lets commits be lost.
// A setting that loses no commits stays as it is.
func TestDurable(t *testing.T) {
	p := newPlace(t)
	s := p.store(t)
	register(t, s, 1, 2, sender.Settings{})
	sealed := []sender.SealedSecret{{ID: "a", Sealed: []byte("sealed"), Key: "1"}}
	require.NoError(t, s.InTx(t.Context(), func(tx pgx.Tx) error {
		require.NoError(t, s.SetSecretsTx(t.Context(), tx, "sub_0", 1, sealed))
		return s.HoldSubscriptionTx(t.Context(), tx, "wsub_0_1", sender.SubscriptionPaused, "")
	}))
	calls := changes(s)
	for set, want := range map[string]string{"off": "on", "on": "on", "local": "local", "remote_write": "remote_write", "remote_apply": "remote_apply"} {
		for name, call := range calls {
			t.Run(set+", "+name, func(t *testing.T) {
				tx := p.begin(t, pgx.ReadCommitted)
				_, err := tx.Exec(t.Context(), "SET LOCAL synchronous_commit = "+set)
				require.NoError(t, err)
				require.NoError(t, call(t.Context(), tx))
				var commit string
				require.NoError(t, tx.QueryRow(t.Context(), "SHOW synchronous_commit").Scan(&commit))
				require.Equal(t, want, commit)
				require.NoError(t, tx.Rollback(t.Context())) // so that each call meets the same
			})
		}
	}
}

// changes are the calls that change something in a caller's transaction. They need what
// TestDurable has made.
func changes[Tx any](s *postgres.Store[Tx]) map[string]func(ctx context.Context, tx Tx) error {
	return map[string]func(ctx context.Context, tx Tx) error{
		"PublishTx": func(ctx context.Context, tx Tx) error {
			_, err := s.PublishTx(ctx, tx, []sender.Draft{draft("")})
			return err
		},
		"CreateSubscriberTx": func(ctx context.Context, tx Tx) error {
			return s.CreateSubscriberTx(ctx, tx, sender.Subscriber{ID: "sub_new", CreatedAt: time.Now()}, nil)
		},
		"DeleteSubscriberTx": func(ctx context.Context, tx Tx) error { return s.DeleteSubscriberTx(ctx, tx, "sub_0") },
		"SetSecretsTx": func(ctx context.Context, tx Tx) error {
			return s.SetSecretsTx(ctx, tx, "sub_0", 2, nil)
		},
		"RewrapTx": func(ctx context.Context, tx Tx) error {
			done, err := s.RewrapTx(ctx, tx, "sub_0", []byte("sealed"), sender.SealedSecret{ID: "a", Sealed: []byte("anew"), Key: "2"})
			if err == nil && !done {
				err = errors.New("there was nothing to rewrap")
			}
			return err
		},
		"CreateSubscriptionTx": func(ctx context.Context, tx Tx) error {
			return s.CreateSubscriptionTx(ctx, tx, sender.Subscription{ID: "new", Subscriber: "sub_0", URL: "https://example.com/", EventTypes: []string{"*"}})
		},
		"UpdateSubscriptionTx": func(ctx context.Context, tx Tx) error {
			return s.UpdateSubscriptionTx(ctx, tx, sender.Subscription{ID: "wsub_0_0", URL: "https://example.com/new", EventTypes: []string{"*"}})
		},
		"HoldSubscriptionTx": func(ctx context.Context, tx Tx) error {
			return s.HoldSubscriptionTx(ctx, tx, "wsub_0_0", sender.SubscriptionPaused, "")
		},
		"ResumeSubscriptionTx": func(ctx context.Context, tx Tx) error {
			return s.ResumeSubscriptionTx(ctx, tx, "wsub_0_1", sender.Resume{})
		},
		"CloseSubscriptionTx": func(ctx context.Context, tx Tx) error { return s.CloseSubscriptionTx(ctx, tx, "wsub_0_0") },
		"CloseSubscriptionTx of a paused one": func(ctx context.Context, tx Tx) error {
			return s.CloseSubscriptionTx(ctx, tx, "wsub_0_1")
		},
		"DeleteSubscriptionTx": func(ctx context.Context, tx Tx) error { return s.DeleteSubscriptionTx(ctx, tx, "wsub_0_0") },
	}
}

// Nothing is stored in a caller's transaction that a statement has ended: it would be committed
// at once, without the caller's change.
func TestEndedTransaction(t *testing.T) {
	p := newPlace(t)
	exec := func(tx pgx.Tx) func(statement string) error {
		return func(statement string) error {
			_, err := tx.Exec(t.Context(), statement)
			return err
		}
	}
	t.Run("pgx", func(t *testing.T) {
		keepsOutOfEnded(t, p, changes(p.store(t)), func() (tx pgx.Tx, run func(statement string) error, end func()) {
			tx = p.begin(t, pgx.ReadCommitted)
			return tx, exec(tx), func() { _ = tx.Rollback(context.Background()) }
		})
	})
	t.Run("pgx, behind a savepoint", func(t *testing.T) {
		keepsOutOfEnded(t, p, changes(p.store(t)), func() (tx pgx.Tx, run func(statement string) error, end func()) {
			outer := p.begin(t, pgx.ReadCommitted)
			tx, err := outer.Begin(t.Context())
			require.NoError(t, err)
			return tx, exec(tx), func() { _ = outer.Rollback(context.Background()) }
		})
	})
	t.Run("database/sql", func(t *testing.T) {
		s, err := postgres.NewSQL(p.pool, &postgres.Config{Schema: p.schema})
		require.NoError(t, err)
		db := stdlib.OpenDBFromPool(p.pool)
		defer db.Close()
		keepsOutOfEnded(t, p, changes(s), func() (tx *sql.Tx, run func(statement string) error, end func()) {
			tx, err := db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			return tx, func(statement string) error {
				_, err := tx.ExecContext(t.Context(), statement)
				return err
			}, func() { _ = tx.Rollback() }
		})
	})
}

func keepsOutOfEnded[Tx any](t *testing.T, p *place, calls map[string]func(ctx context.Context, tx Tx) error, begin func() (tx Tx, run func(statement string) error, end func())) {
	for name, call := range calls {
		for _, statement := range []string{"ROLLBACK", "COMMIT"} {
			tx, run, end := begin()
			ended, err := run(statement), call(t.Context(), tx)
			end()
			require.NoError(t, ended)
			require.ErrorIs(t, err, sql.ErrTxDone, "%s after %s", name, statement)
		}
	}
	require.Zero(t, p.count(t, `SELECT (SELECT count(*) FROM {}.surehook_events) + (SELECT count(*) FROM {}.surehook_subscribers) + (SELECT count(*) FROM {}.surehook_subscriptions)`))
}
