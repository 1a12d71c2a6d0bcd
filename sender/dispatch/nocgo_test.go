//go:build !cgo

package dispatch_test

const withCgo = false
