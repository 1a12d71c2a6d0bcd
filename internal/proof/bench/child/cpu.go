package child

import "github.com/surehook/surehook/internal/cputime"

// CPU is the CPU time of this process so far, in microseconds.
func CPU() float64 { return float64(cputime.Used()) / 1e3 }
