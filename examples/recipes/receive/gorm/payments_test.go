package payments_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/surehook/surehook"
	"github.com/surehook/surehook/dedup"
	pgdedup "github.com/surehook/surehook/dedup/postgres"
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

// TestReceivesInTransactionsThatOthersBegin shows what SQLite, MySQL and MariaDB need.
func TestReceivesInTransactionsThatOthersBegin(t *testing.T) {
	for name, prepare := range map[string]bool{"without PrepareStmt": false, "with PrepareStmt": true} {
		t.Run(name, func(t *testing.T) {
			sqlDB := receivetest.DB(t)
			db, err := gorm.Open(postgres.New(postgres.Config{Conn: sqlDB}), &gorm.Config{PrepareStmt: prepare, Logger: logger.Discard})
			require.NoError(t, err)
			store, err := pgdedup.NewSQL(nil)
			require.NoError(t, err)
			inTx := payments.InTx(db, pgdedup.InTxSQL(sqlDB, nil))
			secret := signing.GenerateSecret()
			rcv, err := surehook.NewReceiver(inTx, dedup.Adapt(store, payments.SQLTx), "billing", secret.Reveal(), nil)
			require.NoError(t, err)
			receivetest.Check(t, sqlDB, rcv, secret, func(tx *gorm.DB, query string, args ...any) error { return tx.Exec(query, args...).Error })

			err = inTx(t.Context(), func(tx *gorm.DB) error {
				require.NoError(t, tx.Exec("INSERT INTO payments VALUES ('open')").Error)
				var seen int
				require.NoError(t, db.Raw("SELECT count(*) FROM payments WHERE event = 'open'").Scan(&seen).Error)
				require.Zero(t, seen, "the application's handle is not in the transaction")
				return nil
			})
			require.NoError(t, err)
			require.NoError(t, db.Exec("SELECT 1").Error, "nor is it when the transaction has ended")
		})
	}
}
