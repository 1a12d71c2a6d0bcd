// Package race tells tests, by the constant Enabled, whether they run under the race
// detector. It makes SQLite many times slower, and makes sync.Pool drop items at
// random.
package race
