//go:build unix

// Package cputime returns the processor time of this process, for benchmarks and
// programs that measure.
package cputime

import (
	"syscall"
	"time"
)

// Used is the processor time of this process so far, of user and system together; 0 on
// systems that do not report it.
func Used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
