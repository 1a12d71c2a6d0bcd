//go:build unix

package postgres_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender/internal/takeovertest"
	"github.com/surehook/surehook/sender/storetest"
)

// ofProcesses is an empty store, and the place where processes open it: dsn is theirs.
func ofProcesses(t *testing.T, direct, dsn string, pooler bool) (storetest.Store[pgx.Tx], string) {
	t.Helper()
	p := childPlace{DSN: dsn, Schema: newid.New("test_", time.Now()), Pooler: pooler}
	pool, err := pgxpool.New(t.Context(), direct)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	s := newStore(t, pool, p.Schema)
	require.NoError(t, s.Migrate(t.Context()))
	t.Cleanup(func() { dropSchema(t, pool, p.Schema) })
	text, err := json.Marshal(p)
	require.NoError(t, err)
	return s, string(text)
}

// The deliveries that a killed process held are attempted again within seconds.
func TestKilledIsTakenOver(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	s, place := ofProcesses(t, dsn, dsn, false)
	takeovertest.Killed(t, s, place)
}

// A stopped process is taken over too, and changes nothing when it comes back.
func TestStoppedIsTakenOver(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	s, place := ofProcesses(t, dsn, dsn, false)
	takeovertest.Stopped(t, s, place)
}
