// Package pgtest gives tests and the benchmark program a PostgreSQL server: the one
// that the environment names, or a server of their own that ends with their process. It
// returns connection strings and imports no driver.
package pgtest
