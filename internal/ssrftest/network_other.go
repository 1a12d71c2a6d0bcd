//go:build !linux

package ssrftest

import "testing"

// InOwnNetwork skips the test: only Linux has network namespaces.
func InOwnNetwork(t *testing.T, _ string) { skip(t, "namespaces", "a network of its own is for Linux") }

func ownNetwork(t *testing.T, _ *Outside) { t.Fatal("for Linux") }
