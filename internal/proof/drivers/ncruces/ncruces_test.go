package ncruces_test

import (
	"testing"

	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/surehook/surehook/internal/proof/drivers"
)

func TestMain(m *testing.M) { drivers.Main(m) }

func TestStores(t *testing.T) {
	drivers.Run(t, "sqlite3", "_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(5000)&_txlock=immediate")
}
