package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
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
	calls := map[string]func(ctx context.Context, tx pgx.Tx) error{
		"PublishTx": func(ctx context.Context, tx pgx.Tx) error {
			_, err := s.PublishTx(ctx, tx, []sender.Draft{draft("")})
			return err
		},
		"CreateSubscriberTx": func(ctx context.Context, tx pgx.Tx) error {
			return s.CreateSubscriberTx(ctx, tx, sender.Subscriber{ID: "sub_new", CreatedAt: time.Now()}, nil)
		},
		"DeleteSubscriberTx": func(ctx context.Context, tx pgx.Tx) error { return s.DeleteSubscriberTx(ctx, tx, "sub_0") },
		"SetSecretsTx": func(ctx context.Context, tx pgx.Tx) error {
			return s.SetSecretsTx(ctx, tx, "sub_0", 2, nil)
		},
		"RewrapTx": func(ctx context.Context, tx pgx.Tx) error {
			done, err := s.RewrapTx(ctx, tx, "sub_0", sealed[0].Sealed, sender.SealedSecret{ID: "a", Sealed: []byte("anew"), Key: "2"})
			require.True(t, done)
			return err
		},
		"CreateSubscriptionTx": func(ctx context.Context, tx pgx.Tx) error {
			return s.CreateSubscriptionTx(ctx, tx, sender.Subscription{ID: "new", Subscriber: "sub_0", URL: "https://example.com/", EventTypes: []string{"*"}})
		},
		"UpdateSubscriptionTx": func(ctx context.Context, tx pgx.Tx) error {
			return s.UpdateSubscriptionTx(ctx, tx, sender.Subscription{ID: "wsub_0_0", URL: "https://example.com/new", EventTypes: []string{"*"}})
		},
		"HoldSubscriptionTx": func(ctx context.Context, tx pgx.Tx) error {
			return s.HoldSubscriptionTx(ctx, tx, "wsub_0_0", sender.SubscriptionPaused, "")
		},
		"ResumeSubscriptionTx": func(ctx context.Context, tx pgx.Tx) error {
			return s.ResumeSubscriptionTx(ctx, tx, "wsub_0_1", sender.Resume{})
		},
		"CloseSubscriptionTx": func(ctx context.Context, tx pgx.Tx) error { return s.CloseSubscriptionTx(ctx, tx, "wsub_0_0") },
		"CloseSubscriptionTx of a paused one": func(ctx context.Context, tx pgx.Tx) error {
			return s.CloseSubscriptionTx(ctx, tx, "wsub_0_1")
		},
		"DeleteSubscriptionTx": func(ctx context.Context, tx pgx.Tx) error { return s.DeleteSubscriptionTx(ctx, tx, "wsub_0_0") },
	}
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
