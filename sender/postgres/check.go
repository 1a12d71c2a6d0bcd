package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/surehook/surehook/internal/migrate"
	"github.com/surehook/surehook/internal/pgfit"
	"github.com/surehook/surehook/sender"
)

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
	unfit, err := pgfit.Check(func(query string, to ...any) error { return w.row(query).Scan(to...) })
	if err != nil {
		return fail("reading the server's settings", err)
	}
	if unfit != nil {
		return fmt.Errorf("%w: %w", sender.ErrUnfit, unfit)
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
