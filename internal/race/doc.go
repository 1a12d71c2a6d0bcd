// Package race tells tests by the constant Enabled whether they run under the race
// detector, which makes SQLite many times slower, and sync.Pool drop items at random.
package race
