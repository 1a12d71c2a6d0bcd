// Package drivers tests sender/sqlite and dedup/sqlite with drivers for SQLite other than
// modernc.org/sqlite, with which all other tests run: github.com/mattn/go-sqlite3, which is
// SQLite's own C, and github.com/ncruces/go-sqlite3. It runs the suite of dedup/deduptest, and
// that part of sender/storetest that is about callers' transactions, or all of it if
// SUREHOOK_EVERY is 1.
//
// mattn's driver needs cgo. Without it its tests are skipped aloud, or fail if
// SUREHOOK_REQUIRE, a list with commas, names cgo.
//
// It is a module of its own, so that nobody who imports a store depends on these drivers.
package drivers
