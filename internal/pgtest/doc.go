// Package pgtest gives tests and the benchmark program a PostgreSQL server: the
// one they are told to use, or one of their own that ends with their process. It
// hands out connection strings and imports no driver.
package pgtest
