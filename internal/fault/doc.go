// Package fault has nothing but tests, of the library on a database, a network and a
// disk that fail.
//
// A run of the tests makes some of the calls fail, and others the next time. All of them
// are made to by
//
//	SUREHOOK_EVERY=1 go test -timeout 1h ./internal/fault
package fault
