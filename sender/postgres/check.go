package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/surehook/surehook/sender"
)

// migrated names something that each migration makes, by which it is seen, or a column
// of it: those who migrate with a tool of their own have no ledger of ours.
var migrated = [...]string{"surehook_rollups"}

const selectMade = `SELECT to_regclass($1) IS NOT NULL
	AND ($2 = '' OR EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass($1) AND attname = $2 AND NOT attisdropped))`

// oldest is the first version of PostgreSQL that is supported, as server_version_num.
const oldest = 150000

// Check implements sender.DispatchStore.
func (c *core) Check(ctx context.Context) error {
	return c.read(ctx, func(w *work) error {
		var version int
		var fsync string
		if err := w.row(`SELECT current_setting('server_version_num')::int, current_setting('fsync')`).Scan(&version, &fsync); err != nil {
			return fail("reading the server's settings", err)
		}
		if version < oldest {
			return fmt.Errorf("%w: the server's version is %d: PostgreSQL %d or newer is needed", sender.ErrUnfit, version/10000, oldest/10000)
		}
		if fsync != "on" {
			return fmt.Errorf("%w: fsync is %s: set it to on: a commit could be lost with the power", sender.ErrUnfit, fsync)
		}
		for i, name := range migrated {
			var there bool
			table, column, _ := strings.Cut(name, ".")
			if err := w.row(selectMade, w.text(table), column).Scan(&there); err != nil {
				return fail("looking for the tables", err)
			}
			if !there {
				return fmt.Errorf("%w: migration %03d is missing (there is no %s): call Migrate before", sender.ErrUnfit, i+1, w.text(name))
			}
		}
		return nil
	})
}
