// Package waittest runs the tests of packages that wait more than they compute: for timeouts,
// leases and servers.
package waittest

import (
	"flag"
	"strconv"
	"testing"
)

// Run runs a package's tests, for TestMain. Up to atOnce parallel tests run at
// once, however few processors there are, unless the flag -parallel says otherwise.
func Run(m *testing.M, atOnce int) int {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", strconv.Itoa(atOnce)); err != nil {
			panic(err)
		}
	}
	return m.Run()
}
