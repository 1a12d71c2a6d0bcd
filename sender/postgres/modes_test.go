package postgres_test

import (
	"fmt"
	"testing"

	"github.com/surehook/surehook/sender/postgres"
)

var modes = []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"}

// A process works whatever the query mode of its pool is, and if that has one connection.
func TestServiceInQueryModes(t *testing.T) {
	for _, mode := range modes {
		for _, pooler := range []bool{false, true} {
			if pooler && mode == "describe_exec" { // is refused
				continue
			}
			t.Run(fmt.Sprint(mode, " pooler ", pooler), func(t *testing.T) {
				p := newPlace(t)
				pool := openPool(t, "default_query_exec_mode", mode, "pool_max_conns", "1")
				s := newService(t, pool, &postgres.Config{Schema: p.schema, Pooler: pooler}, 3)
				s.deliver(t, 20, 60)
				p.settled(t)
			})
		}
	}
}
