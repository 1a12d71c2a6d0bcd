// Package postgres keeps jobs in the application's PostgreSQL database, version 15 or
// newer, beside the tables of sender/postgres: for applications that use pgx (New) or
// database/sql with any driver (NewSQL).
//
// Any number of processes claim jobs at once, without a leader: a claim takes row
// locks and passes over what others have locked. All times are the database's.
// Transactions at READ COMMITTED, REPEATABLE READ and SERIALIZABLE are served; under
// the stricter two an idempotency key that is used twice at once can ask for the
// transaction to be run again (sender.ErrRetryTx).
package postgres
