//go:build unix

package sqlite_test

import (
	"database/sql"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/jobs"
	"github.com/surehook/surehook/sender/jobs/sqlite"
)

// A job that is accepted into a file that was removed would be gone with the process.
func TestFileIsRemoved(t *testing.T) {
	t.Parallel()
	p := path(t)
	db := open(t, p, fit)
	db.SetMaxOpenConns(1) // a new connection would make a file
	s, err := sqlite.New(db, nil)
	require.NoError(t, err)
	require.NoError(t, s.Migrate(t.Context()))
	j, err := jobs.New(s, []jobs.Kind[*sql.Tx]{{Name: "work", Run: nothing}}, nil)
	require.NoError(t, err)
	submit := func() error {
		_, err := j.Submit(t.Context(), jobs.Submission{Kind: "work"})
		return err
	}
	require.NoError(t, submit())
	require.NoError(t, os.Rename(p, p+".moved"))
	require.Eventually(t, func() bool { return errors.Is(submit(), sender.ErrUnfit) }, time.Minute, time.Millisecond)
	require.ErrorIs(t, s.Check(t.Context()), sender.ErrUnfit)
	require.NoError(t, os.Rename(p+".moved", p))
	require.Eventually(t, func() bool { return submit() == nil }, time.Minute, time.Millisecond)
}
