package simulation

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	deduppostgres "github.com/surehook/surehook/dedup/postgres"
	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/postgres"
	"github.com/surehook/surehook/sender/storetest"
)

// InPostgres is an empty schema of a PostgreSQL database, for one run. Each process has
// a store of its own in it, with its own memory and clock, and the receivers have their
// markers and effects in it. Its connections break in the middle of transactions, and
// at commits.
//
// Its time is the simulation's: the schema has a clock_timestamp() that comes before
// the server's own, and returns the time that a connection got when it was acquired.
type InPostgres struct {
	links
	pool   *pgxpool.Pool
	schema string
	now    func() time.Time
	dedup  *deduppostgres.Store[pgx.Tx]
	open   []func() // ends the connections of a process
	others refuser
	listen context.CancelFunc
	ended  chan struct{}
}

// Postgres makes an InPostgres on the server of a connection string.
func Postgres(ctx context.Context, dsn string) (*InPostgres, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	d := &InPostgres{schema: strings.ToLower(newid.New("simulation_", time.Now())), now: time.Now}
	if d.dedup, err = deduppostgres.New(&deduppostgres.Config{Schema: d.schema}); err != nil {
		return nil, err
	}
	dial := cfg.ConnConfig.DialFunc
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &link{Conn: conn, of: &d.links}, nil
	}
	cfg.ConnConfig.RuntimeParams["search_path"] = d.schema + ", pg_catalog"
	cfg.PrepareConn = d.prepare
	cfg.ConnConfig.Tracer = &d.others
	// There is no AfterRelease: with one, a goroutine would release connections, at a time
	// of its own. The next call might then get another connection, which has prepared other
	// statements. There is no ping, because it would be one message more.
	cfg.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	cfg.MaxConns = 16 // transactions that stay open, one in another
	cfg.MaxConnLifetime, cfg.MaxConnIdleTime = 24*time.Hour, 24*time.Hour
	if d.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, err
	}
	if err := d.build(ctx); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *InPostgres) countsInMemory() {}

// prepare gives a connection the time when it is acquired.
func (d *InPostgres) prepare(ctx context.Context, conn *pgx.Conn) (bool, error) {
	l, ok := conn.PgConn().Conn().(*link)
	if !ok {
		return false, fmt.Errorf("simulation: it is a connection of somebody else: %T", conn.PgConn().Conn())
	}
	l.use(false) // to tell it the time
	if now := d.now().UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano); l.told != now {
		if _, err := conn.Exec(ctx, `SELECT set_config('simulation.now', $1, false)`, now); err != nil {
			return false, err
		}
		l.told = now
	}
	l.use(true) // until it is prepared again: nothing is written on it before
	return true, nil
}

func (d *InPostgres) build(ctx context.Context) error {
	for _, statement := range []string{
		`CREATE SCHEMA ` + d.schema,
		`CREATE FUNCTION ` + d.schema + `.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT current_setting(''simulation.now'')::timestamptz'`,
		`CREATE TABLE ` + d.schema + `.effects (scope text NOT NULL, event text NOT NULL)`,
		`CREATE INDEX effects_event ON ` + d.schema + `.effects (event, scope)`,
	} {
		if _, err := d.pool.Exec(ctx, statement); err != nil {
			return err
		}
	}
	store, err := postgres.New(d.pool, &postgres.Config{Schema: d.schema})
	if err != nil {
		return err
	}
	if err := store.Migrate(ctx); err != nil {
		return err
	}
	db := stdlib.OpenDBFromPool(d.pool)
	return errors.Join(deduppostgres.Migrate(ctx, db, &deduppostgres.Config{Schema: d.schema}), db.Close())
}

// Close removes the schema and everything in it.
func (d *InPostgres) Close() error {
	if d.listen != nil {
		d.listen()
		<-d.ended
	}
	for _, done := range d.open {
		done()
	}
	d.others.on.Store(false)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := d.pool.Exec(ctx, `DROP SCHEMA IF EXISTS `+d.schema+` CASCADE`)
	d.pool.Close()
	return err
}

// Open implements Database.
func (d *InPostgres) Open(ctx context.Context, now, local func() time.Time) (storetest.Store[pgx.Tx], error) {
	d.now = now
	d.others.on.Store(true)
	store, err := postgres.New(d.pool, &postgres.Config{Schema: d.schema, Now: local})
	if err != nil {
		return nil, err
	}
	d.open = append(d.open, store.Open())
	if d.listen != nil {
		return store, nil
	}
	// The first store's process publishes. A store that does not listen would send
	// hints to others, at times of its own.
	ctx, d.listen = context.WithCancel(ctx)
	d.ended = make(chan struct{})
	go func() {
		defer close(d.ended)
		store.Listen(ctx)
	}()
	select {
	case <-store.Woken():
		return store, nil
	case <-d.ended:
		return nil, ctx.Err()
	}
}

func (d *InPostgres) receiving() receiving {
	return &application[pgx.Tx]{
		store: d.dedup,
		inTx:  deduppostgres.InTx(d.pool, pgx.TxOptions{}),
		effect: func(ctx context.Context, tx pgx.Tx, scope, event string) error {
			_, err := tx.Exec(ctx, `INSERT INTO effects (scope, event) VALUES ($1, $2)`, scope, event)
			return err
		},
		effects: func(ctx context.Context, tx pgx.Tx, scope, event string) (n int, err error) {
			err = tx.QueryRow(ctx, `SELECT count(*) FROM effects WHERE scope = $1 AND event = $2`, scope, event).Scan(&n)
			return n, err
		},
	}
}

func (d *InPostgres) leases(ctx context.Context) ([]dispatch.Claimed, error) {
	rows, err := d.pool.Query(ctx, `SELECT l.event, l.subscription, l.token, l.number, l.claimed_at, s.id, e.id, e.type, e.object_type, e.object_id, e.created_at, e.notice, l.spared
		FROM surehook_leases l JOIN surehook_feed f ON f.position = l.event JOIN surehook_events e ON e.no = f.event
		JOIN surehook_subscriptions s ON s.no = l.subscription ORDER BY l.event, l.subscription`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (dispatch.Claimed, error) {
		c := dispatch.Claimed{Target: &dispatch.Target{}}
		err := r.Scan(&c.Key.Event, &c.Key.Subscription, &c.Token, &c.Number, &c.At, &c.Target.Subscription,
			&c.Event.ID, &c.Event.Type, &c.Event.Object.Type, &c.Event.Object.ID, &c.Event.CreatedAt, &c.Event.Notice, &c.Spared)
		return c, err
	})
}
