//go:build !cgo

package ssrftest

const withCgo = false
