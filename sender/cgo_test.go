//go:build cgo

package sender_test

// withCgo: names can be resolved by the C library.
const withCgo = true
