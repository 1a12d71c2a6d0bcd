//go:build cgo

package mattn_test

import (
	"testing"

	_ "github.com/mattn/go-sqlite3"

	"github.com/surehook/surehook/internal/proof/drivers"
)

func TestMain(m *testing.M) { drivers.Main(m) }

func TestStores(t *testing.T) {
	drivers.Run(t, "sqlite3", "_journal_mode=WAL&_synchronous=FULL&_busy_timeout=5000")
}
