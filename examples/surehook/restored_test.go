package main_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A database that was brought back goes on above what it had given out. Events that wait are
// left alone unless somebody has said how filters shall decide.
func TestRestored(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		u := newUser(t, "SUREHOOK_DATABASE="+p.flag)
		u.does("migrate", "up", "-sets", "dedup")
		a := u.run("restored", "-yes")
		require.Equal(t, 1, a.code, a.errs)
		require.Contains(t, a.errs, "the database has not the sender's tables")

		u.does("migrate", "up", "-sets", "sender")
		version := func() int64 {
			t.Helper()
			var sent struct{ Event struct{ Version int64 } }
			u.reads(&sent, "trigger", "order.packed", "-object", "order/42")
			return sent.Event.Version
		}
		require.EqualValues(t, 1, version())
		a = u.run("restored", "-yes")
		require.Equal(t, 1, a.code, a.errs)
		require.Contains(t, a.out, "which it makes first: 1\n")
		require.Contains(t, a.errs, "nothing was changed: events wait")
		require.Contains(t, a.errs, "Give -as-published if the service has no catalogue")
		a = u.run("restored", "-as-published")
		require.Equal(t, 2, a.code, a.errs)
		require.Contains(t, a.errs, "nothing was changed: give -yes")
		require.EqualValues(t, 2, version())

		require.Contains(t, u.does("restored", "-as-published", "-yes"), "restored: 2 events expanded; the next versions are above ")
		var first, second struct{ Expanded, Version, Position int64 }
		u.reads(&first, "restored", "-yes")
		require.Zero(t, first.Expanded)
		require.Equal(t, first.Version+1, version())
		u.reads(&second, "restored", "-as-published", "-yes")
		require.EqualValues(t, 1, second.Expanded)
		require.Greater(t, second.Position, first.Position)

		_, err := p.open(t).Exec("INSERT INTO surehook_migrations (set_name, version, needs) VALUES ('sender', 9, 9)")
		require.NoError(t, err)
		a = u.run("restored", "-yes")
		require.Equal(t, 1, a.code, a.errs)
		require.Contains(t, a.errs, "run a newer one")
	})
}
