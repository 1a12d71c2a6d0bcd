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

// dispatcherConns is the largest number of connections of the dispatchers of a process: one
// for steps, one for bodies, keyrings and looks, one for upkeep, and one that only beats use.
// Further calls wait for one of the first three. If a beat waited with them, other processes
// would take this one for gone.
const dispatcherConns = 4

// dispatcherPool holds the connections of the dispatchers of this process, while somebody
// uses them.
type dispatcherPool struct {
	mu    sync.Mutex
	users int           // dispatchers, and calls that are under way
	pool  *pgxpool.Pool // nil until its first use

	others chan struct{} // calls that are no beats and use a connection of the pool, or wait for it
}

// Open implements dispatch.Opener: until done is called, what dispatchers do is done on
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

// enter returns the pool of the dispatchers, which must be left again. It returns nil where
// no dispatcher runs in this process: then the application's connections are used.
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

// dispatcherConfig is the configuration of the application's pool, with all that it does
// when it connects, and the settings of the dispatchers.
func (c *core) dispatcherConfig() *pgxpool.Config {
	cfg := c.pool.Config()
	cfg.MaxConns, cfg.MinConns, cfg.MinIdleConns = dispatcherConns, 0, 0
	cfg.ConnConfig.DialFunc = impatiently(cfg.ConnConfig.DialFunc)
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
	// A pooler refuses settings with which a connection begins, and so gives them to nobody
	// else. They are set once more here, because the application's AfterConnect may have
	// changed them.
	again := `SELECT ` + set(durably+`, `+unhurried("false"), all, "false")
	cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if connected != nil {
			if err := connected(ctx, conn); err != nil {
				return err
			}
		}
		encodeWhole(conn.TypeMap())
		_, err := conn.Exec(ctx, again, pgx.QueryExecModeSimpleProtocol)
		return err
	}
	return cfg
}

// readOnly tells whether an error comes from a node that takes no writes: a standby, to
// which a connection can lead after a failover, or a former primary.
func readOnly(err error) bool {
	var failed *pgconn.PgError
	return errors.As(err, &failed) && failed.Code == "25006"
}

// explained adds what to do about an error of a prepared statement that another client's
// connection has, or that this one's has not.
func (s side) explained(err error) error {
	var failed *pgconn.PgError
	if s.pooler && errors.As(err, &failed) && (failed.Code == "26000" || failed.Code == "42P05") {
		return fmt.Errorf("%w: the pooler does not keep prepared statements apart: set default_query_exec_mode=exec in the pool's connection string, or have the pooler keep them (PgBouncer 1.21 or newer: max_prepared_statements)", err)
	}
	return err
}

// side says whose connections are used: those of the application, for its own calls, or
// those of the dispatchers.
type side struct {
	*core
	dispatchers bool
	beats       bool
}

// dispatching is the side of the dispatchers.
func (c *core) dispatching() side { return side{core: c, dispatchers: true} }

// beating is the side of the dispatchers for beats.
func (c *core) beating() side { return side{core: c, dispatchers: true, beats: true} }

// session is a connection of one of the sides.
type session struct {
	*pgxpool.Conn
	side side
	pool *pgxpool.Pool // the dispatchers', or nil
	set  string        // the statement that gives a transaction its settings; "": the connection has them
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
	if !s.beats {
		select {
		case s.sessions.others <- struct{}{}:
		case <-ctx.Done():
			s.leave()
			return session{}, ctx.Err()
		}
	}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		s.exit()
	}
	return session{conn, s, pool, set}, err
}

// exit ends what acquire began on the dispatchers' pool.
func (s side) exit() {
	if !s.beats {
		<-s.sessions.others
	}
	s.leave()
}

// release gives the connection back. After an error of a node that takes no writes, the
// dispatchers connect anew.
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
	s.side.exit()
}
