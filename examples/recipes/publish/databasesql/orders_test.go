package orders_test

import (
	"database/sql"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx
	_ "github.com/lib/pq"              // the driver postgres
	"github.com/stretchr/testify/require"

	orders "github.com/surehook/surehook/examples/recipes/publish/databasesql"
	"github.com/surehook/surehook/examples/recipes/publish/publishtest"
)

func TestPlace(t *testing.T) {
	for name, driver := range map[string]string{"lib/pq": "postgres", "pgx's stdlib": "pgx"} {
		t.Run(name, func(t *testing.T) {
			pool := publishtest.Pool(t)
			hooks := publishtest.SQL(t, pool)
			db, err := sql.Open(driver, pool.Config().ConnString())
			require.NoError(t, err)
			defer func() { require.NoError(t, db.Close()) }()
			o := orders.Orders{DB: db, Hooks: hooks.Publisher}
			publishtest.Check(t, pool, hooks.Registry, hooks.History, o.Place)
		})
	}
}
