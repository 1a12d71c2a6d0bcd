// Package overlap is for the tests of packages in which tests wait more than they compute.
package overlap

import (
	"flag"
	"runtime"
	"strconv"
)

// Tests has n parallel tests run at a time. By itself go test runs as many as there are
// processors, which are idle while all of those wait. TestMain calls it; the flag -parallel of
// the command line counts before it.
func Tests(n int) {
	if err := flag.Set("test.parallel", strconv.Itoa(max(n, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
}
