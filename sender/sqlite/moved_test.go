//go:build unix

package sqlite_test

import (
	"database/sql"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

// SQLite goes on with a file that was removed or replaced, and what is committed then is gone
// with the process. So nothing is committed until the very file is back.
func TestFileIsRemovedOrReplaced(t *testing.T) {
	t.Parallel()
	p := path(t)
	db := open(t, p, fit)
	db.SetMaxOpenConns(1) // a new connection would make a file
	s := newStore(t, db, time.Now)
	publisher := register(t, s, 1)
	publish(t, s, 1, 0, publisher)
	becomes := func(says string) {
		t.Helper()
		for what, does := range map[string]func() error{
			"InTx": func() error { return s.InTx(t.Context(), func(*sql.Tx) error { return nil }) },
			"the caller's transaction": func() error {
				tx, err := db.BeginTx(t.Context(), nil)
				require.NoError(t, err)
				defer func() { _ = tx.Rollback() }()
				_, err = s.PublishTx(t.Context(), tx, []sender.Draft{draft(publisher[0], 0)})
				return err
			},
			"Check": func() error { return s.Check(t.Context()) },
		} {
			require.Eventually(t, func() bool {
				err := does()
				if says == "" {
					return err == nil
				}
				return errors.Is(err, sender.ErrUnfit) && strings.Contains(err.Error(), says)
			}, time.Minute, time.Millisecond, "%s says %q", what, says)
		}
	}
	require.NoError(t, os.Rename(p, p+".moved"))
	becomes("was removed")
	require.NoError(t, os.WriteFile(p, migrated(t), 0o600))
	becomes("was replaced")
	require.NoError(t, os.Rename(p+".moved", p))
	becomes("")
}
