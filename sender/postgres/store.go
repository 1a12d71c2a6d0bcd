package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/surehook/surehook/internal/pgtx"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/feed"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/damage"
	"github.com/surehook/surehook/sender/internal/hourly"
	"github.com/surehook/surehook/sender/internal/pgrun"
	"github.com/surehook/surehook/sender/internal/processes"
	"github.com/surehook/surehook/sender/replay"
)

// Config adjusts a Store. A nil config and zero fields mean the defaults.
type Config struct {
	// Schema is where the tables are. All statements name it, so the search_path of
	// a transaction does not matter. Empty: they name none, and the search_path says
	// where.
	Schema string

	// Pooler says that the connections lead to a pooler such as PgBouncer. It may give a
	// connection to the server to one transaction after another, as with pool_mode =
	// transaction, or refuse settings at the beginning of a connection, as PgBouncer does in
	// any mode. Then dispatchers give their settings to each of their transactions, and hear
	// no hints of other processes: what these publish or make due is found within
	// dispatch.Config.MaxIdle. The query mode of the pool must suit the pooler: exec and
	// simple_protocol suit all of them. See the package's documentation.
	Pooler bool

	// Logger hears of trouble that causes no error, such as that hints of other processes
	// cannot be heard. The default is slog.Default().
	Logger *slog.Logger

	// Now is this process's own clock. It serves only to age the hints where to look for
	// work; times that are stored and compared come from the database. It may be off, and
	// should not jump. The default is time.Now.
	Now func() time.Time
}

// Store is a sender.Store in a PostgreSQL database, for transactions of type Tx. It
// is safe for concurrent use, by any number of processes.
type Store[Tx any] struct {
	*core
	in  func(tx Tx) (conn, bool)
	run func(ctx context.Context, fn func(tx Tx) error) error
}

var (
	_ sender.Store[pgx.Tx]  = (*Store[pgx.Tx])(nil)
	_ sender.Store[*sql.Tx] = (*Store[*sql.Tx])(nil)
	_ dispatch.Store        = (*Store[pgx.Tx])(nil)
	_ dispatch.ReplayPauses = (*Store[pgx.Tx])(nil)
	_ history.Store         = (*Store[pgx.Tx])(nil)
	_ replay.Store          = (*Store[pgx.Tx])(nil)
	_ feed.Store            = (*Store[pgx.Tx])(nil)
)

// New returns a store for producers that use pgx. Each call that the application makes
// takes one of the pool's connections. Dispatchers have connections of their own, made as
// the pool's are: see [Store.Open]. The tables must be there before it is used: see
// [Store.Migrate].
func New(pool *pgxpool.Pool, cfg *Config) (*Store[pgx.Tx], error) {
	c, err := newCore("New", pool, cfg)
	if err != nil {
		return nil, err
	}
	return &Store[pgx.Tx]{
		core: c,
		in:   func(tx pgx.Tx) (conn, bool) { return pgxConn{tx}, tx != nil },
		run:  pgtx.InTx(pool, pgx.TxOptions{}),
	}, nil
}

// NewSQL returns a store for producers that use database/sql, with any driver: publishing
// and the registry work in a *sql.Tx. The dispatcher works on a pool of pgx, to the same
// database.
func NewSQL(pool *pgxpool.Pool, cfg *Config) (*Store[*sql.Tx], error) {
	c, err := newCore("NewSQL", pool, cfg)
	if err != nil {
		return nil, err
	}
	return &Store[*sql.Tx]{
		core: c,
		in:   func(tx *sql.Tx) (conn, bool) { return sqlConn{tx}, tx != nil },
		run:  func(ctx context.Context, fn func(tx *sql.Tx) error) error { return pgrun.SQL(ctx, pool, fn) },
	}, nil
}

// core is the part of a store that does not depend on the type of callers' transactions.
type core struct {
	pool   *pgxpool.Pool
	schema string
	pooler bool
	clock  string // the expression by which statements read the database's time
	now    func() time.Time
	logger *slog.Logger
	woken  chan struct{}
	shard  int64 // of this store's rollups

	published atomic.Int64 // how often callers have stored what a dispatcher is to see
	turns     atomic.Int64 // the last turn that was given
	texts     sync.Map     // statements, as they are sent

	sessions dispatcherPool

	subscriptionCache subscriptionCache
	filterCache       filterCache
	ahead             atomic.Pointer[bodies]
	scanFrom          scanFrom
	rollups           rollups
	merged            hourly.Merged // the hours whose rollups are
	hours             hourly.Counts
	hints             hints
	rowAt             rowAt
	swept             sweeps
	deadLooked        deadLooked
	processes         processes.Known
	damage            *damage.Log
}

func newCore(name string, pool *pgxpool.Pool, cfg *Config) (*core, error) {
	c := &core{
		pool: pool, clock: "clock_timestamp()", now: time.Now, logger: slog.Default(), woken: make(chan struct{}, 1), shard: rand.Int64(),
		subscriptionCache: newSubscriptionCache(), filterCache: newFilterCache(), rowAt: newRowAt(), swept: newSweeps(),
	}
	if cfg != nil {
		c.schema, c.pooler = cfg.Schema, cfg.Pooler
		c.logger = cmp.Or(cfg.Logger, c.logger)
		if cfg.Now != nil {
			c.now = cfg.Now
		}
	}
	c.sessions.others = make(chan struct{}, dispatcherConns-1)
	c.damage = damage.NewLog(c.logger)
	var errs []error
	if pool == nil {
		errs = append(errs, fmt.Errorf("postgres: %s needs a *pgxpool.Pool", name))
	}
	if c.schema != "" && !schemaNames.MatchString(c.schema) {
		errs = append(errs, fmt.Errorf("postgres: Schema %q: it must be 1 to 63 letters, digits and underscores, and not begin with a digit", c.schema))
	}
	if pool != nil && c.pooler && pool.Config().ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeDescribeExec {
		errs = append(errs, errors.New("postgres: Pooler with the query mode describe_exec: between its two trips a pooler can give the connection to others, and a statement of theirs would be run: set default_query_exec_mode=exec in the pool's connection string"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	// Turns order what is due at one time. The clocks of other processes are about as late.
	c.turns.Store(c.now().UnixNano())
	return c, nil
}

var schemaNames = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

// text returns a statement as it is sent: with the schema in front of the tables, and the
// database's clock for {now}.
func (c *core) text(query string) string {
	if t, ok := c.texts.Load(query); ok {
		return t.(string)
	}
	t := strings.ReplaceAll(pgtx.InSchema(c.schema, query), "{now}", c.clock)
	c.texts.Store(query, t)
	return t
}

// Woken implements dispatch.Store.
func (c *core) Woken() <-chan struct{} { return c.woken }
