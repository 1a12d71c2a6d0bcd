package sqlite_test

import (
	"bytes"
	"database/sql"
	"os"
	"testing"

	"github.com/surehook/surehook/internal/overlap"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/takeovertest"
	"github.com/surehook/surehook/sender/sqlite"
)

// TestMain lets tests run this program as processes that are killed, or stopped.
func TestMain(m *testing.M) {
	takeovertest.Child(func(p string) (dispatch.Store, error) {
		db, err := sql.Open("sqlite", "file:"+p+"?"+fit)
		if err != nil {
			return nil, err
		}
		return sqlite.New(db, nil)
	})
	pgtest.TempInMemory()
	overlap.Tests(4)
	os.Exit(m.Run())
}

func replayKeys() (*sender.Keys, error) {
	return sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{1}, 32)})
}
