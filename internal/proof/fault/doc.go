// Package fault tests the library on a database, a network and a disk that fail. It has
// only tests.
//
// A run of the tests makes some of the calls fail, and the next run makes others fail. To
// make each of them fail:
//
//	SUREHOOK_EVERY=1 go test -timeout 1h ./internal/proof/fault
package fault
