//go:build !race

package soak_test

import "time"

const (
	rate    = 20
	timeout = 500 * time.Millisecond
)
