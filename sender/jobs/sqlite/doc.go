// Package sqlite keeps jobs in the application's SQLite database, beside the tables
// of sender/sqlite. It works through database/sql with any driver, and imports none.
//
// As the sender's store it needs a write-ahead log and synchronous=FULL on every
// connection, and refuses to take a job without: see that package for the DSN. Its
// transactions have the write lock from their beginning. With jobs.NewCallbacks they
// are run by the sender's store, and take turns with all others that it runs.
package sqlite
