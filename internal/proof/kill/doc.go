// Package kill kills processes that use the library, at any moment, and checks the state
// that they have left: no acknowledged event is lost, and no event has its effect twice. It
// has only tests, all of them cases of internal/killtest.
package kill
