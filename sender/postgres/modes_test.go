package postgres_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/surehook/surehook/internal/race"
	"github.com/surehook/surehook/sender/postgres"
	"github.com/surehook/surehook/sender/storetest"
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

// The calls of callers and dispatchers have the same results, and send the same
// statements, in all of pgx's query modes, whether pgx knows or guesses the types of
// arguments. All modes that ask the server for types behave alike.
func TestStoreInQueryModes(t *testing.T) {
	for _, mode := range modes[1:] {
		known := mode == "cache_describe" || mode == "describe_exec"
		if (known || race.Enabled) && !every() {
			continue
		}
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			pool := openPool(t, "default_query_exec_mode", mode)
			all := newSchemas(t)
			much := callers
			if every() {
				much = whole
			}
			suite(t, much, func(t *testing.T) storetest.Harness[pgx.Tx] {
				_, h := onPgx(t, all, pool, false)
				return h
			})
		})
	}
}
