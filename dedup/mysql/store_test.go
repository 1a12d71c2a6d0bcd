package mysql_test

import (
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/mysql"
)

// The tests that need a server and a driver are in internal/proof/mysql, a module of its own.

func second[T any](_ T, err error) error { return err }

func TestNilTransaction(t *testing.T) {
	s, ctx, obj := mysql.New(), t.Context(), dedup.Object{Type: "subscriber", ID: "1"}
	for what, err := range map[string]error{
		"Mark":            second(s.Mark(ctx, nil, "test", "a", time.Now())),
		"Advance":         second(s.Advance(ctx, nil, "test", obj, 1)),
		"Version":         second(s.Version(ctx, nil, "test", obj)),
		"Prune":           second(s.Prune(ctx, nil, time.Now(), 1)),
		"SetAside":        s.SetAside(ctx, nil, dedup.DeadLetter{Scope: "test", ID: "a", Type: "x", At: time.Now()}),
		"DeadLetter":      second(s.DeadLetter(ctx, nil, "test", "a")),
		"ListDeadLetters": second(s.ListDeadLetters(ctx, nil, "test", "", 1)),
		"Discard":         s.Discard(ctx, nil, "test", "a"),
		"AskReapply":      second(s.AskReapply(ctx, nil, dedup.Reapply{Scope: "test", ID: "a", At: time.Now()})),
		"ListReapplies":   second(s.ListReapplies(ctx, nil, "test", 0, 1)),
		"CancelReapply":   s.CancelReapply(ctx, nil, "test", 1),
		"TakeReapply":     second(s.TakeReapply(ctx, nil, "test", "a", obj)),
		"AdvanceAgain":    second(s.AdvanceAgain(ctx, nil, "test", obj, 1)),
	} {
		require.ErrorIs(t, err, dedup.ErrInvalid, what)
		require.ErrorContains(t, err, "the transaction is nil", what)
	}
}

func TestNilDB(t *testing.T) {
	require.Nil(t, mysql.InTx(nil, nil), "receiver.New refuses it")
}

func TestMigrations(t *testing.T) {
	names, err := fs.Glob(mysql.Migrations(), "*")
	require.NoError(t, err)
	require.Equal(t, []string{"001_dedup.sql"}, names)
}
