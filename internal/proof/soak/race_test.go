//go:build race

package soak_test

import "time"

// The race detector makes SQLite, which is compiled Go, slower by an order.
const (
	rate    = 6
	timeout = 1500 * time.Millisecond
)
