//go:build cgo

package ssrftest

// withCgo: names can be resolved by the C library.
const withCgo = true
