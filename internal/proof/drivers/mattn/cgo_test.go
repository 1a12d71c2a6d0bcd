//go:build !cgo

package mattn_test

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestStores(t *testing.T) {
	const text = "built without cgo: github.com/mattn/go-sqlite3 is not there"
	if slices.Contains(strings.Split(os.Getenv("SUREHOOK_REQUIRE"), ","), "cgo") {
		t.Fatal(text)
	}
	t.Skip(text)
}
