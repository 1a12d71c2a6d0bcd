package pgrun_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/pgrun"
)

var (
	serialization = &pgconn.PgError{Code: "40001"}
	errBroken     = errors.New("broken on purpose")
)

func TestAgain(t *testing.T) {
	for name, test := range map[string]struct {
		errs []error // of the runs; the last one is also for all further runs
		runs int
		want error
	}{
		"at once":                {[]error{nil}, 1, nil},
		"aborted twice":          {[]error{serialization, fmt.Errorf("x: %w", serialization), nil}, 3, nil},
		"asked for":              {[]error{sender.ErrRetryTx, nil}, 2, nil},
		"broken":                 {[]error{errBroken}, 1, errBroken},
		"aborted, then broken":   {[]error{serialization, errBroken}, 2, errBroken},
		"aborted for ever":       {[]error{serialization}, 50, sender.ErrRetryTx},
		"asks for it for ever":   {[]error{sender.ErrRetryTx}, 50, sender.ErrRetryTx},
		"of what is no abortion": {[]error{&pgconn.PgError{Code: "23505"}}, 1, &pgconn.PgError{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				runs := 0
				began := time.Now()
				err := pgrun.Again(t.Context(), func() error {
					runs++
					return test.errs[min(runs, len(test.errs))-1]
				})
				require.Equal(t, test.runs, runs)
				var code *pgconn.PgError
				switch {
				case test.want == nil:
					require.NoError(t, err)
				case errors.As(test.want, &code):
					require.ErrorAs(t, err, &code)
				default:
					require.ErrorIs(t, err, test.want)
				}
				require.Less(t, time.Since(began), 5*time.Second)
			})
		})
	}
}

func TestAgainDoesNotWaitForWhoIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		require.ErrorIs(t, pgrun.Again(ctx, func() error { return serialization }), sender.ErrRetryTx)
		require.Zero(t, time.Since(began))
	})
}

func TestFail(t *testing.T) {
	require.NoError(t, pgrun.Fail("reading", nil))
	require.EqualError(t, pgrun.Fail("reading", errBroken), "postgres: reading: broken on purpose")
	err := pgrun.Fail("reading", pgrun.Fail("locking", serialization))
	require.ErrorIs(t, err, sender.ErrRetryTx)
	require.ErrorIs(t, err, serialization)
}
