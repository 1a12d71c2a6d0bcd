package main

import (
	"bytes"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/storetest"
)

// location says where a database is, for another process.
type location struct {
	Kind string // "sqlite" or "postgres"
	DSN  string
}

// as returns the location for connections on PostgreSQL that name their user.
func (l location) as(worksFor string) string { return l.DSN + "&application_name=" + worksFor }

// place is a database with a store, and the scenarios' other operations on it.
type place[Tx any] struct {
	location
	store storetest.Store[Tx]
	keys  *sender.Keys
	bytes string // the type of columns for bytes
	// inTx runs fn in a transaction as an application begins and ends one.
	inTx func(ctx context.Context, fn func(tx Tx) error) error
	pool *pgxpool.Pool // of PostgreSQL
	// exec runs a statement in tx. Its parameters are $1, $2 …
	exec func(ctx context.Context, tx Tx, query string, args ...any) error
	// snapshot keeps a snapshot of the database open, in a session of its own,
	// until it is released.
	snapshot func(ctx context.Context) (release func(), err error)
	// settle does the work that the database would do later by itself, in the midst
	// of a measurement.
	settle func(ctx context.Context) error
	close  func() error
}

// asDispatcher opens the store as a dispatcher does, until the place is closed.
func (p *place[Tx]) asDispatcher() {
	store, ok := p.store.(dispatch.Opener)
	if !ok {
		return
	}
	done, closed := store.Open(), p.close
	p.close = func() error {
		done()
		return closed()
	}
}

// kind is a kind of database.
type kind[Tx any] struct {
	name string // as in the names of scenarios
	text string // as in tables
	// fresh makes an empty database with the library's tables.
	fresh func(ctx context.Context, b *bench) (*place[Tx], error)
	// cpu is the CPU time of the database's own processes, in µs. nil: it has none.
	cpu func(ctx context.Context, b *bench) (float64, error)
	// processes has the CPU time of each of them. nil: as above.
	processes func(ctx context.Context, b *bench, l location) (*processes, error)
}

// sealing has the keys with which all processes seal secrets.
func sealing() (*sender.Keys, error) {
	return sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{7}, 32)})
}

// dispatchStore opens the store at a location, for a dispatcher.
func dispatchStore(ctx context.Context, l location) (dispatch.Store, func() error, error) {
	switch l.Kind {
	case onSQLite.name:
		p, err := sqliteAt(l.DSN)
		if err != nil {
			return nil, nil, err
		}
		return p.store, p.close, nil
	case onPostgres.name:
		p, err := postgresAt(ctx, l.DSN, 0)
		if err != nil {
			return nil, nil, err
		}
		return p.store, p.close, nil
	}
	return nil, nil, fmt.Errorf("there is no store of kind %q", l.Kind)
}
