package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/surehook/surehook/internal/migrate"
	"github.com/surehook/surehook/sender"
)

// oldest is the first supported version of PostgreSQL, as server_version_num.
const oldest = 150000

// Check implements dispatch.Store.
func (c *core) Check(ctx context.Context) error {
	err := c.dispatching().read(ctx, c.check)
	if refused(err) {
		return fmt.Errorf("%w: a pooler refuses the settings of the dispatcher's connections: set Config.Pooler: %w", sender.ErrUnfit, err)
	}
	return err
}

// refused tells whether a connection was refused because of its startup parameters.
func refused(err error) bool {
	var failed *pgconn.PgError
	return errors.As(err, &failed) && failed.Code == "08P01" && strings.Contains(failed.Message, "startup parameter")
}

func (c *core) check(w *work) error {
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
	l, err := migrate.ReadPostgres(w.text("surehook_migrations"), migrationSet, func(query string, args ...any) migrate.Row { return w.row(query, args...) })
	if err != nil {
		return fail("reading the ledger", err)
	}
	if err := l.Fits(Migrations()); err != nil {
		return fmt.Errorf("%w: %s: %w", sender.ErrUnfit, migrationSet, err)
	}
	return nil
}
