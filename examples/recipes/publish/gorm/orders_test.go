package orders_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	orders "github.com/surehook/surehook/examples/recipes/publish/gorm"
	"github.com/surehook/surehook/examples/recipes/publish/publishtest"
)

func TestPlace(t *testing.T) {
	for name, prepare := range map[string]bool{"without PrepareStmt": false, "with PrepareStmt": true} {
		t.Run(name, func(t *testing.T) {
			pool := publishtest.Pool(t)
			hooks := publishtest.SQL(t, pool)
			db, err := gorm.Open(postgres.New(postgres.Config{Conn: publishtest.DB(t, pool)}), &gorm.Config{PrepareStmt: prepare, Logger: logger.Discard})
			require.NoError(t, err)
			_, err = orders.SQLTx(db)
			require.ErrorContains(t, err, "no transaction")
			o := orders.Orders{DB: db, Hooks: hooks.Publisher}
			publishtest.Check(t, pool, hooks.Registry, hooks.History, o.Place)
		})
	}
}
