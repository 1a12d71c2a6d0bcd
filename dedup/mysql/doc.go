// Package mysql keeps markers, versions, dead letters and requests to apply again in an
// application's MySQL or MariaDB database. It works in the *sql.Tx of any driver and imports
// none; its examples are of github.com/go-sql-driver/mysql. [InTx] runs a receiver's
// transactions.
//
//	db, err := sql.Open("mysql", "app@tcp(db:3306)/shop?innodb_lock_wait_timeout=2&interpolateParams=true")
//	err = mysql.Migrate(ctx, db)
//	hooks, err := surehook.NewReceiver(mysql.InTx(db, nil), mysql.New(), "billing", secret, nil)
//
// # Tables
//
// surehook_dedup_markers, surehook_dedup_versions, surehook_dedup_dead_letters and
// surehook_dedup_reapplies, made by [Migrate] in the connection's database, whose progress is
// noted in surehook_migrations, or by a tool of your own from [Migrations]. They need MySQL
// 8.0.16 (2019) or MariaDB 10.3 (2018), and are tables of InnoDB. Times are microseconds since
// 1970, UTC. Ids, scopes and objects are VARBINARY, and so compared byte by byte. The mysql
// client shows such columns as text with --skip-binary-as-hex.
//
// The tests of this module run on MariaDB 10.11. With SUREHOOK_TEST_MYSQL they run on a server
// of yours: see internal/proof/mysql.
//
// # Applying events again
//
// A row of surehook_dedup_reapplies asks for events to be applied again that were taken
// before: see [dedup.Reapply]. It takes effect when such an event arrives once more. In
// package receiver, Receiver.Reapply writes the row. By hand it is one statement:
//
//	INSERT INTO surehook_dedup_reapplies (scope, event_id) VALUES ('billing', 'evt_1');
//	INSERT INTO surehook_dedup_reapplies (scope, object_type, object_id) VALUES ('billing', 'invoice', '17');
//	INSERT INTO surehook_dedup_reapplies (scope, marked_from, marked_until) VALUES ('billing',
//		TIMESTAMPDIFF(MICROSECOND, '1970-01-01', '2026-03-01 12:00'),
//		TIMESTAMPDIFF(MICROSECOND, '1970-01-01', '2026-03-02 12:00'));
//
// An event must match all that is given. marked_from and marked_until are times at which
// events were taken first (marked_at of surehook_dedup_markers). number and asked_at have
// defaults: leave them out. Events that are taken after asked_at are not covered; it is
// the server's clock, and the markers have the clock of the process that took the event. A
// row that is deleted has no effect any more. In surehook_dedup_markers, reapplied is the
// number of the last row that had the event applied again.
//
// # Isolation
//
// [InTx] runs transactions at READ COMMITTED. A transaction with the id of another one
// then waits until that one has ended. It then finds a duplicate, or the id free, and can
// go on either way. The server's default is REPEATABLE READ, at which the store keeps its
// promises, too. But there a statement that looks for a missing row locks the gap in which
// it would be. So unlike events wait for each other, and there are more deadlocks. The
// answer to a transaction whose snapshot is older than the stored version is
// [dedup.ErrRetryTx]. At READ COMMITTED, a server that writes a binary log needs
// binlog_format=ROW or MIXED: ROW is MySQL's default, and MIXED is MariaDB's.
//
// # Deadlocks and waits
//
// A deadlock (the server's error 1213) and a wait for a lock that was too long (1205) are
// [dedup.ErrRetryTx]: the transaction must be rolled back, and run again from its beginning.
// So are MariaDB's 1020 (innodb_snapshot_isolation) and a cluster's conflicts. Package
// receiver runs it again up to three times within a request, and then answers 503, so that
// the sender tries again.
//
// After 1205 the server has rolled back the statement alone, and after 1213 the whole
// transaction: each statement after it is then committed by itself. So a function must return
// an error of the database and never go on after it. [InTx] finds out if it went on.
//
// A wait ends after innodb_lock_wait_timeout, which is 50 seconds by default, also if the
// client is gone. Set it to a second or two in the DSN, as above. Otherwise a transaction that
// hangs somewhere else holds up all that wait for it, together with the locks that they have.
//
// # The connection
//
// These do not matter to the store: parseTime, loc and time_zone (it sends and reads no time
// but numbers), charset and collation, clientFoundRows, autocommit and sql_mode (its values
// are checked before, and no column is too narrow for one). multiStatements is not needed,
// also not by Migrate. Only a receiver.Group needs multiStatements=true: it sends two
// statements at a time. With interpolateParams=true a statement takes one trip to the server
// in place of two.
//
// A dead letter's body is one parameter. It must fit into max_allowed_packet of the server (16
// MB or more by default) and of the driver.
//
// A commit survives a crash of the server with innodb_flush_log_at_trx_commit=1, which is the
// default, and sync_binlog=1 if the server is replaced by a replica then. With other values the
// last events can be lost, which were answered with 2xx and do not come again.
package mysql
