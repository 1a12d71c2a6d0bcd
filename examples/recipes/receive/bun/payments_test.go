package payments_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	payments "github.com/surehook/surehook/examples/recipes/receive/bun"
	"github.com/surehook/surehook/examples/recipes/receive/receivetest"
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
