package fault_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	modernc "modernc.org/sqlite"

	"github.com/surehook/surehook/internal/proof/faultdriver"
	"github.com/surehook/surehook/sender/sqlite"
)

// disk bounds the size of a database, like a full disk: a write that needs another page
// fails with SQLITE_FULL (sqlite.org/pragma.html#pragma_max_page_count).
type disk struct {
	driver.Connector
	pages atomic.Int64 // 0: no bound
}

func (d *disk) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := d.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	pages := d.pages.Load()
	if pages == 0 {
		pages = 1 << 30
	}
	_, err = c.(driver.ExecerContext).ExecContext(ctx, fmt.Sprintf("PRAGMA max_page_count = %d", pages), nil)
	return c, err
}

// A full disk stops a sender for as long as the disk is full. The sender loses nothing,
// does not poll all the time, and goes on by itself.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	inner, err := faultdriver.Open(&modernc.Driver{}, "file:"+path+"?_txlock=immediate&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(5000)")
	require.NoError(t, err)
	d := &disk{Connector: inner}
	var begun, full atomic.Int64
	db := sql.OpenDB(faultdriver.Wrap(d, func(_ context.Context, c faultdriver.Call, do func() error) error {
		if c.Kind == faultdriver.Begin {
			begun.Add(1)
		}
		err := do()
		if code, ok := err.(interface{ Code() int }); ok && code.Code()&0xff == 13 {
			full.Add(1)
		}
		return err
	}))
	db.SetConnMaxLifetime(100 * time.Millisecond) // then the bound is the present one
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	store, err := sqlite.New(db, nil)
	require.NoError(t, err)
	require.NoError(t, store.Migrate(t.Context()))
	s := newService(t, store, time.Second)
	server := httptest.NewServer(s.observed(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })))
	t.Cleanup(server.Close)
	s.register(t, server.URL)
	for range 300 { // which are dispatched when there is no room for their outcomes
		s.publish(t.Context())
	}
	d.pages.Store(int64(count(t, db, "PRAGMA page_count")))
	db.SetMaxIdleConns(0) // it does not change on the present connections
	db.SetMaxIdleConns(2)
	s.dispatch(t)
	require.Eventually(t, func() bool { return full.Load() >= 3 }, soon, 5*time.Millisecond, "the disk is full")
	began, before := time.Now(), begun.Load()
	time.Sleep(800 * time.Millisecond) // the time of the trouble, which a busy machine makes longer
	asked := begun.Load() - before
	require.Less(t, float64(asked), 75*time.Since(began).Seconds(), "it asks all the time")
	require.NotZero(t, s.pending())
	d.pages.Store(0)
	s.settled(t, "a full disk")
	s.publish(t.Context())
	s.settled(t, "what is published then")
	s.check(t)
}
