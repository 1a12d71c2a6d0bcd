// Package postgres keeps a sender's events, registry and deliveries in a PostgreSQL
// database (15 or newer), beside the application's own tables, for any number of
// processes. [New] is for producers that use pgx, and [NewSQL] for those that use
// database/sql with any driver. Both have the same statements and tables.
//
// # Many processes
//
// Every process may run a dispatcher. There is no leader, and nothing to configure: they
// share the work by locking the heads of subscriptions that are due and that nobody else
// has locked. If a process is gone, its deliveries are claimed again within ten seconds. A
// process that holds leases says once a second in surehook_processes that it lives, and
// the others end its leases when it has not said so for five. A process that was stopped
// for longer changes nothing when it comes back. The tokens of the leases have changed by
// then, and it begins nothing before it has said again that it lives. Caps and rates are
// reckoned under the head's lock, and all times are those of the database, not of the
// processes' clocks.
//
// # Who waits for whom
//
// Callers change events, subscribers and subscriptions, in transactions that may stay
// open. Dispatchers read these, and never wait for them. Dispatchers change heads, turns
// and deliveries, in short transactions of their own. Callers never lock these. A pause
// or a resume is a change of the subscription's row, and the next dispatcher that looks
// at its head takes that over. So neither an open transaction of a producer, nor one
// that changes a subscription, holds up anybody's deliveries.
//
// A dispatcher's transaction that a process leaves open, because it is stopped or its
// machine is gone, ends after two seconds by idle_in_transaction_session_timeout, and
// its locks with it. One that waits for a lock gives up after five seconds by
// lock_timeout, releases its own locks, and is run again.
//
// # Connections
//
// A process that publishes, serves an API or keeps the registry works on the application's
// pool: one connection for each call. While a dispatcher runs, it has up to four
// connections of its own, and one more on which it LISTENs. They are made with the pool's
// configuration (its BeforeConnect, AfterConnect, DialFunc, TLS, tracer), and closed when
// it has ended. So count five for each process that dispatches. The application and the
// dispatcher cannot use up each other's connections: a pool with one connection is enough.
//
// Its connections have the settings that its transactions need, whatever the application's
// AfterConnect and the role say. These are settings of the planner, read committed, a
// lock_timeout of 5 s, a statement_timeout of 60 s, an idle_in_transaction_session_timeout
// of 2 s, no transaction_timeout, a tcp_user_timeout of 10 s, and synchronous_commit on if
// it was off. A transaction that fails by one of the timeouts is tried again. On Linux, a connection
// that a firewall has forgotten is given up after 20 s in which the server has confirmed
// nothing; elsewhere, or with a DialFunc whose connections are no *net.TCPConn, a call on
// it is given up after two minutes. The connections lead to a node that takes writes,
// unless the pool's target_session_attrs says otherwise. After an error that says that a
// node does not (25006) they are all given up: a failover needs no restart. For the
// application's own pool, set target_session_attrs=read-write. With
// default_transaction_read_only in the database or the role nothing is dispatched, and the
// dispatcher keeps trying.
//
// # Query modes and poolers
//
// All of pgx's query modes work (default_query_exec_mode). Callers' statements are sent
// in the mode of the pool, and those of dispatchers as cache_statement.
//
// Through a pooler that gives a connection to one transaction after another, such as
// PgBouncer with pool_mode = transaction, set [Config].Pooler, and
// default_query_exec_mode=exec or simple_protocol in the pool's connection string.
// cache_describe will do as well while the tables do not change. So will cache_statement
// if the pooler keeps prepared statements apart (PgBouncer 1.21 or newer, with
// max_prepared_statements). describe_exec never works, and [New] refuses it. Dispatchers
// then use the pool's mode, and give their settings to each transaction, which costs some
// of the database's processor time. They hear no hints of other processes: the events of
// these wait for the next poll, up to dispatch.Config.MaxIdle. PgBouncer's session mode
// refuses the settings of a connection, too, and needs Pooler, with any query mode. A
// dispatcher that meets a pooler without Pooler does not begin, and says so
// ([sender.ErrUnfit]). Migrate needs one connection throughout: run it past the pooler.
//
// # Isolation
//
// PublishTx and the registry work in READ COMMITTED, REPEATABLE READ and SERIALIZABLE
// transactions. Under the last two, the error of a transaction that loses against another
// one matches [sender.ErrRetryTx], and [Store.InTx] runs it again. Both set
// synchronous_commit to on, for the transaction, if it is off and they change something.
//
// # Transactions that a statement has ended
//
// End a transaction by its Commit or Rollback. A statement such as ROLLBACK ends it, too, and
// then each further one is committed at once: an event would be stored without the change that
// it reports. PublishTx and the registry refuse such a transaction, without a trip to the
// server, with pgx and with its driver for database/sql: the error matches sql.ErrTxDone. Other
// drivers do not show what they know of a transaction, and nothing is refused there.
//
// # Hints
//
// Dispatchers poll: every few milliseconds while there is work, and every
// dispatch.Config.MaxIdle when there is none. A process that publishes and has no
// dispatcher sends a NOTIFY after [Store.InTx] or Wake, at most a hundred times a second.
// It does so in a transaction of its own, because PostgreSQL lets transactions that notify
// commit one at a time. A running dispatcher LISTENs on a connection beside the pool, and
// makes another one if it is lost.
//
// # The order of the events
//
// Neither a sequence nor a clock is the order of the commits. So events get their
// positions (surehook_feed) after they are committed, by one expander at a time, and
// deliveries name them by these. For events that are not expanded yet, snapshots tell
// which were committed before a subscription changed: see surehook_subscriptions. A resume
// notes their numbers: see surehook_left. In
// another cluster, into which a dump was restored, transaction ids differ: so
// [Store.Restored] expands all waiting events, before one can be taken for earlier or
// later than it was.
//
// # Restores and failovers
//
// After the database was brought back to an earlier state, from a backup or by a failover
// to a standby that lacked the last commits, call [Store.Restored] once. Otherwise
// versions and positions that receivers have seen are given out again, and receivers drop
// the events that have them. A dispatcher that runs does that itself within five seconds if
// the database is in another cluster, on another timeline, or another one in its cluster.
// After a copy of the files nobody can tell. A failover to a synchronous standby needs
// nothing. Give several hosts in the connection string, and target_session_attrs=read-write.
//
// # How it is stored
//
// Plain rows, to be read with psql. A delivery that is live is in one of surehook_pending,
// surehook_leases (an attempt is in flight) and surehook_waiting (for its next attempt).
// These stay as small as the work. surehook_ended has the dead letters and the cancelled
// ones, and surehook_bodies the bodies that were made for an older payload version.
// surehook_attempts has every attempt: one whose class is empty means that the delivery is
// delivered. A subscription's head (surehook_heads) says when to look at its deliveries,
// and surehook_turns the same for a subscriber. So a claim visits those who have something
// due, and no others.
//
// An old snapshot, held open by a forgotten transaction, an export or a replica, keeps
// dead rows from being vacuumed. Scans begin above such rows, so a snapshot costs disk
// space rather than speed; alert on the age of backend_xmin all the same.
package postgres
