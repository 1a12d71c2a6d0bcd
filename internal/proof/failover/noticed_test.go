package failover_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// noticing has a dispatcher's restorations sent to a channel.
func noticing() (dispatch.Hooks, <-chan sender.Restoration) {
	noticed := make(chan sender.Restoration, 100)
	return dispatch.Hooks{Restored: func(_ context.Context, r sender.Restoration) { noticed <- r }}, noticed
}

// cutOff makes a standby follow its primary no more.
func cutOff(t *testing.T, primary, standby *pgtest.Server) {
	t.Helper()
	from, to := connect(t, primary.DSN()), connect(t, standby.DSN())
	await(t, "the standby to have all", func() bool {
		return read[bool](t, from, `SELECT coalesce(bool_and(replay_lsn >= pg_current_wal_lsn()), false) FROM pg_stat_replication`)
	})
	run(t, to, `ALTER SYSTEM SET primary_conninfo = ''`)
	run(t, to, `SELECT pg_reload_conf()`)
	await(t, "the standby to follow no more", func() bool {
		return read[int](t, from, `SELECT count(*) FROM pg_stat_replication`) == 0
	})
}

// The standby that takes over lacks the last commits. The dispatchers that run all the time
// notice it, one of them leaves a gap, and nobody calls Restored.
func TestFailoverIsNoticed(t *testing.T) {
	t.Parallel()
	before, primary := begun(t)
	w := before.world
	before.subscribe("r")
	before.publish("a")
	before.drain()
	standby := follower(t, primary, "async")
	cutOff(t, primary, standby)

	hooks, noticed := noticing()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ran := make(chan error, 2)
	for range 2 {
		d := newService(t, w, eitherOf(t, primary, standby)).dispatcherWith(hooks)
		go func() { ran <- d.Run(ctx) }()
	}
	var lost sender.Ref
	for range 3 {
		lost = before.publish("a")
	}
	await(t, "the last version to be delivered", func() bool { return len(w.ids("r")) == 4 })
	require.NoError(t, primary.Kill())
	run(t, connect(t, standby.DSN()), `SELECT pg_promote()`)
	await(t, "the failover to be noticed", func() bool { return len(noticed) > 0 })
	r := <-noticed
	require.Equal(t, strings.Replace(r.LineageBefore, "/00000001/", "/00000002/", 1), r.Lineage, "another timeline")
	require.NotEqual(t, r.LineageBefore, r.Lineage)

	after := newService(t, w, standby.DSN())
	again := after.publish("a")
	require.Greater(t, again.Version, lost.Version)
	await(t, "the new version to be delivered", func() bool { return len(w.ids("r")) == 5 })
	stop()
	for range 2 {
		require.NoError(t, <-ran)
	}
	after.drain()
	require.Empty(t, noticed, "one gap")
	_, moved, err := after.store.RestoreIfMoved(t.Context())
	require.NoError(t, err)
	require.False(t, moved)
}

// A database that is made of another one's dump, or as its copy in the same cluster, is
// another one.
func TestMovedDatabaseIsNoticed(t *testing.T) {
	for name, move := range map[string]func(t *testing.T, old *pgtest.Server) (dsn string){
		"dump": func(t *testing.T, old *pgtest.Server) string {
			other := fresh(t)
			require.NoError(t, old.Dump(t.Context(), other))
			return other.DSN()
		},
		"database of the same cluster": func(t *testing.T, old *pgtest.Server) string {
			run(t, connect(t, pgtest.With(old.DSN(), "dbname", "template1")), `CREATE DATABASE copy TEMPLATE postgres`)
			return pgtest.With(old.DSN(), "dbname", "copy")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, old := begun(t)
			before.subscribe("r")
			first := before.publish("a")
			before.drain()
			last := before.publish("a")
			require.Equal(t, first.Version+1, last.Version, "no gap in a database that is where it was")
			before.pool.Close()
			after := newService(t, before.world, move(t, old))
			hooks, noticed := noticing()
			var all errgroup.Group
			for range 4 {
				all.Go(func() error {
					_, err := after.dispatcherWith(hooks).RunOnce(context.Background())
					return err
				})
			}
			require.NoError(t, all.Wait())
			require.Len(t, noticed, 1)
			require.Greater(t, after.publish("a").Version, last.Version+1)
			_, err := after.store.Restored(t.Context(), nil)
			require.NoError(t, err)
			after.drain()
			require.Len(t, noticed, 1, "Restored leaves nothing to notice")
		})
	}
}

// The error of RestoreIfMoved names the right that a role lacks, and Restored works without it.
func TestLineageThatTheRoleMayNotSee(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, server := begun(t)
	run(t, s.pool, `CREATE ROLE plain LOGIN; GRANT ALL ON ALL TABLES IN SCHEMA public TO plain; GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO plain; REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC`)
	plain := newService(t, s.world, strings.Replace(server.DSN(), "postgres@", "plain@", 1))
	_, _, err := plain.store.RestoreIfMoved(ctx)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "pg_control_system")
	done, err := plain.store.Restored(ctx, nil)
	require.NoError(t, err)
	require.Positive(t, done.Version)
	require.Empty(t, done.Lineage)
}
