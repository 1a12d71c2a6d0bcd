package payments_test

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/driver/pgdriver"

	payments "github.com/surehook/surehook/examples/recipes/receive/bun"
	"github.com/surehook/surehook/examples/recipes/receive/receivetest"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/signing"
)

func TestReceives(t *testing.T) {
	sqlDB, secret := receivetest.DB(t), signing.GenerateSecret()
	rcv, err := payments.Receiver(bun.NewDB(sqlDB, pgdialect.New()), secret.Reveal())
	require.NoError(t, err)
	receivetest.Check(t, sqlDB, rcv, secret, func(tx bun.Tx, query string, args ...any) error {
		_, err := tx.ExecContext(t.Context(), query, args...)
		return err
	})
}

// An event is not answered as applied if its transaction was not committed, with bun's own
// driver either.
func TestNothingIsCommitted(t *testing.T) {
	for name, statement := range map[string]string{"keeps quiet about an error": "SELECT 1/0", "ends the transaction": "ROLLBACK"} {
		for driver, open := range map[string]func(t *testing.T) *sql.DB{"pgx": receivetest.DB, "pgdriver": pgDriver} {
			t.Run(name+", "+driver, func(t *testing.T) {
				sqlDB, secret := open(t), signing.GenerateSecret()
				rcv, err := payments.Receiver(bun.NewDB(sqlDB, pgdialect.New()), secret.Reveal())
				require.NoError(t, err)
				handler := rcv.Handler(receiver.Fact(func(ctx context.Context, tx bun.Tx, _ receiver.Event) error {
					_, _ = tx.ExecContext(ctx, statement)
					return nil
				}))
				snd := receivertest.NewSender(t, secret, nil)
				require.Equal(t, 503, snd.Request(receivertest.NewEvent("invoice", "in_1", 1)).Serve(handler).Status)
			})
		}
	}
}

// pgDriver is the database of receivetest by bun's own driver.
func pgDriver(t *testing.T) *sql.DB {
	t.Helper()
	pool := receivetest.Pool(t)
	c := pool.Config().ConnConfig
	network, at := "tcp", c.Host+":"+strconv.Itoa(int(c.Port))
	if strings.HasPrefix(c.Host, "/") {
		network, at = "unix", c.Host+"/.s.PGSQL."+strconv.Itoa(int(c.Port))
	}
	db := sql.OpenDB(pgdriver.NewConnector(pgdriver.WithNetwork(network), pgdriver.WithAddr(at), pgdriver.WithInsecure(true),
		pgdriver.WithUser(c.User), pgdriver.WithPassword(c.Password), pgdriver.WithDatabase(c.Database),
		pgdriver.WithConnParams(map[string]any{"search_path": c.RuntimeParams["search_path"]})))
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}
