// Package mysql tests dedup/mysql and a receiver on it with a real server and with
// github.com/go-sql-driver/mysql. It runs the suite of dedup/deduptest at several
// isolation levels and under settings that could spoil a value, hostile deliveries, and
// kill -9.
//
// The server is the one that SUREHOOK_TEST_MYSQL names: the driver's DSN up to the name of the
// database, as "root:secret@tcp(127.0.0.1:3306)/", of a user who may create databases. Without
// it a MariaDB server is started from installed binaries for as long as the tests run, on
// Linux. Without binaries the tests are skipped aloud, or fail if SUREHOOK_REQUIRE, a list with
// commas, names mariadb.
//
// It is a module of its own, so that importers of dedup do not depend on the driver.
package mysql
