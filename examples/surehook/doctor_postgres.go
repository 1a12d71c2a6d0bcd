package main

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

func checkPostgres(ctx context.Context, d *database, found *findings) {
	checkServer(ctx, d.sql, found)
	checkPooler(ctx, d.pool, found)
	checkClock(ctx, d.sql, found)
	checkTransactions(ctx, d.sql, found)
	checkConnections(ctx, d.sql, found)
	var size string
	if err := d.sql.QueryRowContext(ctx, "SELECT pg_size_pretty(pg_database_size(current_database()))").Scan(&size); err != nil {
		found.failed("disk space", err)
		return
	}
	found.add("disk space", ok, fmt.Sprintf("the database has %s; how much is free, its server alone knows", size), "")
}

func checkServer(ctx context.Context, db *sql.DB, found *findings) {
	var version int
	var standby bool
	var fsync, commit, pages, neon string
	err := db.QueryRowContext(ctx, "SELECT current_setting('server_version_num')::int, pg_is_in_recovery(), current_setting('fsync'), current_setting('synchronous_commit'), current_setting('full_page_writes'), coalesce(current_setting('neon.timeline_id', true), '')").
		Scan(&version, &standby, &fsync, &commit, &pages, &neon)
	if err != nil {
		found.failed("server", err)
		return
	}
	judgeServer(found, version, standby)
	switch {
	case neon == "" && (fsync != "on" || pages != "on"):
		found.add("durability", fail, fmt.Sprintf("fsync is %s, full_page_writes is %s: a commit could be lost with the power", fsync, pages), "set both to on, in postgresql.conf")
	case commit == "off":
		found.add("durability", warn, "synchronous_commit is off: the library sets it to on for its own transactions, your own commits can be lost", "set it to on for the role or the database")
	case neon != "":
		found.add("durability", ok, fmt.Sprintf("Neon keeps commits on other servers, synchronous_commit is %s", commit), "")
	default:
		found.add("durability", ok, fmt.Sprintf("fsync and full_page_writes are on, synchronous_commit is %s", commit), "")
	}
}

func judgeServer(found *findings, version int, standby bool) {
	detail := fmt.Sprintf("PostgreSQL %d", version/10000)
	switch {
	case version < 150000:
		found.add("server", fail, detail, "version 15 or newer is needed")
	case standby: // for doctor itself it will do
		found.add("server", warn, detail+", a standby, which takes no writes: a service with this URL publishes and sends nothing",
			"give the service the URL of the primary, or of all servers with target_session_attrs=read-write")
	default:
		found.add("server", ok, detail, "")
	}
}

// checkPooler finds a pooler by two facts. The process id that it tells for the connection
// is not the server's. And if it gives each transaction another server's connection, two of
// its connections that are open at once have the same server process.
func checkPooler(ctx context.Context, pool *pgxpool.Pool, found *findings) {
	var pids [2]uint32
	var pooled bool
	var open [2]*pgxpool.Conn
	for i := range open {
		c, err := pool.Acquire(ctx)
		if err != nil {
			found.failed("pooler", err)
			return
		}
		defer c.Release()
		open[i] = c
	}
	for i, c := range open {
		if err := c.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pids[i]); err != nil {
			found.failed("pooler", err)
			return
		}
		pooled = pooled || c.Conn().PgConn().PID() != pids[i]
	}
	switch {
	case pids[0] == pids[1]:
		found.add("pooler", warn, "the connections go through a pooler that gives one to each transaction (PgBouncer: pool_mode = transaction)",
			"set Config.Pooler of sender/postgres, default_query_exec_mode=exec in the URL, and run migrations past it")
	case pooled:
		found.add("pooler", warn, "the connections go through a pooler", "set Config.Pooler of sender/postgres, and run migrations past it")
	default:
		found.add("pooler", ok, "the connections go straight to the server", "")
	}
}

// checkClock compares the clocks in the middle of a question. The timestamps that are
// signed are the database's, and receivers allow five minutes.
func checkClock(ctx context.Context, db *sql.DB, found *findings) {
	before := time.Now()
	var at time.Time
	if err := db.QueryRowContext(ctx, "SELECT clock_timestamp()").Scan(&at); err != nil {
		found.failed("clock", err)
		return
	}
	judgeClock(found, at.Sub(before.Add(time.Since(before)/2)), "the database's", time.Since(before))
}

func judgeClock(found *findings, off time.Duration, whose string, doubt time.Duration) {
	far := max(off, -off)
	detail := fmt.Sprintf("%s is %v off this machine's", whose, off.Round(10*time.Millisecond))
	switch {
	case far > 2*time.Minute+doubt:
		found.add("clock", fail, detail+": receivers refuse timestamps that are more than five minutes off", "run a time service (chrony, systemd-timesyncd) on both")
	case far > 5*time.Second+doubt:
		found.add("clock", warn, detail, "run a time service (chrony, systemd-timesyncd) on both")
	default:
		found.add("clock", ok, whose+" agrees with this machine's", "")
	}
}

// checkTransactions finds the forgotten transaction that keeps dead rows from being
// removed.
func checkTransactions(ctx context.Context, db *sql.DB, found *findings) {
	switch oldest, err := oldestTransaction(ctx, db); {
	case err != nil:
		found.failed("transactions", err)
	case oldest > 10*time.Minute:
		found.add("transactions", warn, fmt.Sprintf("one is open for %v: it keeps dead rows from being removed, and others wait for its locks", oldest.Round(time.Second)),
			"find it in pg_stat_activity (state, xact_start) or pg_prepared_xacts, and end it")
	default:
		found.add("transactions", ok, "none that this role can see is open for long", "")
	}
}

// oldestTransaction is for how long one is open that keeps dead rows; 0: none is. One that
// waits for its next statement has an id if it has written, and most often no snapshot.
func oldestTransaction(ctx context.Context, db *sql.DB) (time.Duration, error) {
	var seconds float64
	err := db.QueryRowContext(ctx, `SELECT coalesce(extract(epoch FROM clock_timestamp() - min(since)), 0)::float8 FROM (
		SELECT xact_start AS since FROM pg_stat_activity
			WHERE (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL) AND pid <> pg_backend_pid() AND backend_type = 'client backend'
		UNION ALL SELECT prepared FROM pg_prepared_xacts) AS open`).Scan(&seconds)
	return time.Duration(seconds * float64(time.Second)), err
}

// checkConnections tells how many more connections the role can have: the server, the database
// and the role each have a limit. Of the sessions of others, a role sees little more than that
// they are there, and in which database. A process that dispatches has five beside its pool.
func checkConnections(ctx context.Context, db *sql.DB, found *findings) {
	var used, most int64
	err := db.QueryRowContext(ctx, `SELECT used, most FROM (
		SELECT count(*) AS used, current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint AS most
			FROM pg_stat_activity WHERE datid IS NOT NULL
		UNION ALL SELECT count(*), datconnlimit FROM pg_stat_activity a, pg_database d
			WHERE d.datname = current_database() AND a.datid = d.oid AND datconnlimit >= 0 GROUP BY datconnlimit
		UNION ALL SELECT count(*), rolconnlimit FROM pg_stat_activity a, pg_roles r
			WHERE r.rolname = current_user AND a.usesysid = r.oid AND rolconnlimit >= 0 GROUP BY rolconnlimit
		) AS limits ORDER BY most - used LIMIT 1`).Scan(&used, &most)
	if err != nil {
		found.failed("connections", err)
		return
	}
	judgeConnections(used, most, found)
}

func judgeConnections(used, most int64, found *findings) {
	detail := fmt.Sprintf("%d of %d are in use", used, most)
	if most-used < 10 && most-used < most/2 {
		found.add("connections", warn, detail+": a process that dispatches needs five, beside its pool",
			"raise max_connections, or the limit of the role or the database (ALTER ROLE, ALTER DATABASE … CONNECTION LIMIT), or make the pools smaller")
		return
	}
	found.add("connections", ok, detail, "")
}
