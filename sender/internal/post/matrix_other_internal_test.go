//go:build !linux

package post

import "testing"

func TestMatrix(t *testing.T) {
	t.Skip("NOT TESTED with the servers of others: they are started on Linux alone")
}
