package orders_test

import (
	"testing"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	orders "github.com/surehook/surehook/examples/recipes/publish/bun"
	"github.com/surehook/surehook/examples/recipes/publish/publishtest"
)

func TestPlace(t *testing.T) {
	pool := publishtest.Pool(t)
	hooks := publishtest.SQL(t, pool)
	o := orders.Orders{DB: bun.NewDB(publishtest.DB(t, pool), pgdialect.New()), Hooks: hooks.Publisher}
	publishtest.Check(t, pool, hooks.Registry, hooks.History, o.Place)
}
