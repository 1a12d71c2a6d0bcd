package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ownConns is how many connections the dispatchers of a process have at most: one for
// steps, one for bodies and looks, one for upkeep and one for beats. None of these
// waits for another one then, whatever it does.
const dispatcherConns = 4

// ownPool is the connections of the dispatchers of this process. They are there while
// somebody uses them.
type dispatcherPool struct {
	mu    sync.Mutex
	users int           // dispatchers, and what is under way
	pool  *pgxpool.Pool // nil until its first use
}

// Open implements sender.Opener: until done is called, what dispatchers do is done on
// connections of their own, at most four, which are made when they are needed. They are
// closed when the last one is done.
func (c *core) Open() (done func()) {
	c.sessions.mu.Lock()
	defer c.sessions.mu.Unlock()
	c.sessions.users++
	return sync.OnceFunc(c.leave)
}

func (c *core) leave() {
	c.sessions.mu.Lock()
	c.sessions.users--
	var unused *pgxpool.Pool
	if c.sessions.users == 0 {
		unused, c.sessions.pool = c.sessions.pool, nil
	}
	c.sessions.mu.Unlock()
	if unused != nil {
		unused.Close()
	}
}

// enter returns the pool of the dispatchers, which is to be left, or nil: where none runs
// in this process, the application's connections are used all the same.
func (s side) enter() (*pgxpool.Pool, error) {
	c := s.core
	c.sessions.mu.Lock()
	defer c.sessions.mu.Unlock()
	if !s.dispatchers || c.sessions.users == 0 {
		return nil, nil
	}
	if c.sessions.pool == nil {
		pool, err := pgxpool.NewWithConfig(context.Background(), c.dispatcherConfig())
		if err != nil {
			return nil, fail("making the dispatcher's connections", err)
		}
		c.sessions.pool = pool
	}
	c.sessions.users++
	return c.sessions.pool, nil
}

// ownConfig is the application's, with whatever that does when it connects.
func (c *core) dispatcherConfig() *pgxpool.Config {
	cfg := c.pool.Config()
	cfg.MaxConns, cfg.MinConns, cfg.MinIdleConns = dispatcherConns, 0, 0
	if cfg.ConnConfig.ValidateConnect == nil {
		cfg.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if c.pooler {
		return cfg
	}
	all := with(with(settings, patience), sessionSettings)
	maps.Copy(cfg.ConnConfig.RuntimeParams, all)
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	cfg.ConnConfig.StatementCacheCapacity = max(cfg.ConnConfig.StatementCacheCapacity, 512)
	connected := cfg.AfterConnect
	// A pooler refuses the settings that a connection begins with, rather than give them
	// to others. The application's AfterConnect may have changed them.
	again := `SELECT ` + set(durably, all, "false")
	cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if connected != nil {
			if err := connected(ctx, conn); err != nil {
				return err
			}
		}
		_, err := conn.Exec(ctx, again, pgx.QueryExecModeSimpleProtocol)
		return err
	}
	return cfg
}

// readOnly tells whether an error is that of a node that takes no writes: a standby,
// which a connection can lead to after a failover, or a primary that is no more.
func readOnly(err error) bool {
	var failed *pgconn.PgError
	return errors.As(err, &failed) && failed.Code == "25006"
}

// explained says what to do about an error of a statement that another client's
// connection has prepared, or this one's has not.
func (s side) explained(err error) error {
	var failed *pgconn.PgError
	if s.pooler && errors.As(err, &failed) && (failed.Code == "26000" || failed.Code == "42P05") {
		return fmt.Errorf("%w: the pooler does not keep prepared statements apart: set default_query_exec_mode=exec in the pool's connection string, or have the pooler keep them (PgBouncer 1.21 or newer: max_prepared_statements)", err)
	}
	return err
}

// side is whose connections are used: the application's, for what its calls ask for,
// or the dispatchers'.
type side struct {
	*core
	dispatchers bool
}

// dispatching is for what dispatchers do.
func (c *core) dispatching() side { return side{c, true} }

// session is a connection of one of the sides.
type session struct {
	*pgxpool.Conn
	core *core
	pool *pgxpool.Pool // the dispatchers', or nil
	set  string        // what gives its settings to a transaction; "": the connection has them
}

func (s side) acquire(ctx context.Context) (session, error) {
	pool, err := s.enter()
	if err != nil {
		return session{}, err
	}
	if pool == nil {
		conn, err := s.pool.Acquire(ctx)
		return session{Conn: conn, set: txSettings}, err
	}
	set := ""
	if s.pooler {
		set = pooledTxSettings
	}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		s.leave()
	}
	return session{conn, s.core, pool, set}, err
}

// release gives the connection back. After an error of a node that takes no writes, the
// dispatchers' all lead to somewhere else the next time.
func (s session) release(err error) {
	if readOnly(err) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.Conn.Conn().Close(ctx)
	}
	s.Release()
	if s.pool == nil {
		return
	}
	if readOnly(err) {
		s.pool.Reset()
	}
	s.core.leave()
}
