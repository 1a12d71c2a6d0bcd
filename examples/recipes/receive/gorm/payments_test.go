package payments_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	payments "github.com/surehook/surehook/examples/recipes/receive/gorm"
	"github.com/surehook/surehook/examples/recipes/receive/receivetest"
	"github.com/surehook/surehook/signing"
)

func TestReceives(t *testing.T) {
	for name, prepare := range map[string]bool{"without PrepareStmt": false, "with PrepareStmt": true} {
		t.Run(name, func(t *testing.T) {
			sqlDB := receivetest.DB(t)
			db, err := gorm.Open(postgres.New(postgres.Config{Conn: sqlDB}), &gorm.Config{PrepareStmt: prepare, Logger: logger.Discard})
			require.NoError(t, err)
			require.Nil(t, payments.SQLTx(db), "it is no transaction")
			secret := signing.GenerateSecret()
			rcv, err := payments.Receiver(db, secret.Reveal())
			require.NoError(t, err)
			receivetest.Check(t, sqlDB, rcv, secret, func(tx *gorm.DB, query string, args ...any) error { return tx.Exec(query, args...).Error })
		})
	}
}
