package simulation

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/pgtest"
)

// Where a call breaks does not depend on whether its connection has prepared its statement, for
// the same seed may get another connection in the next run. Nor does it depend on when the
// pool closes a connection that broke in an earlier call.
func TestOnlyWorkBreaks(t *testing.T) {
	d, err := Postgres(t.Context(), pgtest.DSN(t))
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	for n, want := range []bool{true, false} {
		d.pool.Reset() // the next connection has prepared nothing
		for range 2 {
			conn, err := d.pool.Acquire(t.Context())
			require.NoError(t, err)
			d.breakAt(n, false)
			_, err = conn.Exec(t.Context(), `SELECT $1::bigint`, 1)
			broke, _ := d.mend()
			conn.Release()
			require.Equal(t, want, broke)
			require.Equal(t, want, err != nil)
		}
	}
	conn, err := d.pool.Acquire(t.Context())
	require.NoError(t, err)
	d.breakAt(0, false)
	require.NoError(t, conn.Hijack().Close(t.Context()))
	broke, _ := d.mend()
	require.False(t, broke)
}
