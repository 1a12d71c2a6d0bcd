//go:build cgo

package dispatch_test

// withCgo: names can be resolved by the C library.
const withCgo = true
