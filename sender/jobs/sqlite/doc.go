// Package sqlite keeps jobs in the application's SQLite database, beside the tables
// of sender/sqlite. It works through database/sql with any driver, and imports none.
//
// Like the sender's store it needs a write-ahead log and synchronous=FULL on every
// connection, and accepts no job without them: see that package for the DSN. Its
// transactions have the write lock from their beginning, except those that only read, and
// those of one store take turns. With jobs.NewCallbacks the sender's store runs them, in one
// line with its own.
package sqlite
