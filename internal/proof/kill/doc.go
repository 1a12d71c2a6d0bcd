// Package kill kills processes that use the library, at any moment, and checks what they
// have left: nothing that was acknowledged is lost, and nothing has its effect twice. It
// has only tests, all of them cases of internal/killtest.
package kill
