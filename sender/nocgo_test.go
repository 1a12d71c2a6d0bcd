//go:build !cgo

package sender_test

const withCgo = false
