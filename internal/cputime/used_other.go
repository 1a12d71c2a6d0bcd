//go:build !unix

package cputime

import "time"

// Used is 0 here.
func Used() time.Duration { return 0 }
