// Package waiting is for packages whose tests wait, for leases, for locks and until a
// process is taken for gone, more than they work.
package waiting

import (
	"flag"
	"runtime"
	"strconv"
)

// Overlap lets at least four parallel tests of the package run at once, also where there
// are fewer processors. TestMain calls it before it runs the tests. The flag -parallel
// overrides it.
func Overlap() {
	if err := flag.Set("test.parallel", strconv.Itoa(max(4, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
}
