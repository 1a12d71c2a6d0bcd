package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/postgres"
)

// An acknowledged change is durable even where the server's setting would let commits be
// lost: each call that changes something makes sure of this by itself. A setting that keeps
// commits from being lost, or is stricter, stays as it is.
func TestDurable(t *testing.T) {
	cfg := newSchema(t)
	store := newPgx(t, cfg)
	obj := dedup.Object{Type: "subscriber", ID: "1"}
	letter := dedup.DeadLetter{Scope: "s", ID: "letter", Type: "t", Body: []byte("b"), Reason: "r", At: time.Now()}
	again, asked := dedup.Reapply{Scope: "s", ID: "again", At: time.Now()}, int64(0)
	calls := map[string]func(ctx context.Context, tx pgx.Tx) error{
		"Mark": func(ctx context.Context, tx pgx.Tx) error {
			fresh, err := store.Mark(ctx, tx, "s", "mark", time.Now())
			require.True(t, fresh)
			return err
		},
		"Advance": func(ctx context.Context, tx pgx.Tx) error {
			newer, err := store.Advance(ctx, tx, "s", obj, 2)
			require.True(t, newer)
			return err
		},
		"MarkAndAdvance": func(ctx context.Context, tx pgx.Tx) error {
			fresh, newer, err := store.MarkAndAdvance(ctx, tx, "s", "both", time.Now(), obj, 3)
			require.True(t, fresh && newer)
			return err
		},
		"MarkAndAdvance of what is stale": func(ctx context.Context, tx pgx.Tx) error {
			fresh, newer, err := store.MarkAndAdvance(ctx, tx, "s", "stale", time.Now(), obj, 1)
			require.True(t, fresh && !newer)
			return err
		},
		"SetAside": func(ctx context.Context, tx pgx.Tx) error { return store.SetAside(ctx, tx, letter) },
		"Discard":  func(ctx context.Context, tx pgx.Tx) error { return store.Discard(ctx, tx, "s", "set_aside_before") },
		"AskReapply": func(ctx context.Context, tx pgx.Tx) error {
			_, err := store.AskReapply(ctx, tx, again)
			return err
		},
		"CancelReapply": func(ctx context.Context, tx pgx.Tx) error { return store.CancelReapply(ctx, tx, "s", asked) },
		"TakeReapply": func(ctx context.Context, tx pgx.Tx) error {
			due, err := store.TakeReapply(ctx, tx, "s", "again", obj)
			require.True(t, due)
			return err
		},
		"AdvanceAgain": func(ctx context.Context, tx pgx.Tx) error {
			current, err := store.AdvanceAgain(ctx, tx, "s", obj, 2)
			require.True(t, current)
			return err
		},
	}
	for set, want := range map[string]string{"off": "on", "on": "on", "local": "local", "remote_write": "remote_write", "remote_apply": "remote_apply"} {
		pool := openPool(t, "synchronous_commit", set)
		require.NoError(t, inPgx(pool)(t.Context(), func(tx pgx.Tx) error {
			before := letter
			before.ID = "set_aside_before"
			_, err := store.Advance(t.Context(), tx, "s", obj, 1)
			require.NoError(t, err)
			_, err = store.Mark(t.Context(), tx, "s", again.ID, again.At)
			require.NoError(t, err)
			asked, err = store.AskReapply(t.Context(), tx, again)
			require.NoError(t, err)
			return store.SetAside(t.Context(), tx, before)
		}))
		for name, call := range calls {
			for kind, inTx := range map[string]func(context.Context, func(pgx.Tx) error) error{
				"begun before": inPgx(pool), "begun with it": postgres.InTx(pool, pgx.TxOptions{}),
			} {
				t.Run(set+", "+name+", "+kind, func(t *testing.T) {
					err := inTx(t.Context(), func(tx pgx.Tx) error {
						require.NoError(t, call(t.Context(), tx))
						var commit string
						require.NoError(t, tx.QueryRow(t.Context(), "SHOW synchronous_commit").Scan(&commit))
						require.Equal(t, want, commit)
						return context.Canceled // so that each call finds the same state
					})
					require.ErrorIs(t, err, context.Canceled)
				})
			}
		}
	}
}
