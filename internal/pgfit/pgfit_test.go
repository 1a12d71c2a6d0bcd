package pgfit_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/pgfit"
)

func TestCheck(t *testing.T) {
	check := func(version int, fsync, neon string) error {
		unfit, err := pgfit.Check(func(_ string, to ...any) error {
			*to[0].(*int), *to[1].(*string), *to[2].(*string) = version, fsync, neon
			return nil
		})
		require.NoError(t, err)
		return unfit
	}
	require.NoError(t, check(150000, "on", ""))
	require.NoError(t, check(180001, "off", "0123"))
	require.EqualError(t, check(180001, "off", ""), "fsync is off: set it to on: a commit could be lost with the power")
	require.EqualError(t, check(140020, "on", ""), "the server's version is 14: PostgreSQL 15 or newer is needed")
	require.EqualError(t, check(140020, "off", "0123"), "the server's version is 14: PostgreSQL 15 or newer is needed")

	away := errors.New("away")
	_, err := pgfit.Check(func(string, ...any) error { return away })
	require.ErrorIs(t, err, away)
}
