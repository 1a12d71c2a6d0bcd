package receivertest_test

import (
	"context"
	"database/sql"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/signing"
)

// Hostile waits in the end for the handler, and not for a connection that has nothing more to
// do with it: the server keeps one for half a second whose body was too large.
func TestHostileEndsWithTheHandler(t *testing.T) {
	t.Parallel()
	s := openShop(t.TempDir())
	t.Cleanup(func() { _ = s.db.Close() })
	rcv, err := receiver.New(s.verifier, receiver.SQL(s.db, nil), sqlite.New(), "default", &receiver.Config{Logger: quiet})
	require.NoError(t, err)
	handler := rcv.Handler(receiver.State(func(_ context.Context, tx *sql.Tx, ev receiver.Event) error { return ship(tx, order{ID: ev.ID}) }))
	var address atomic.Value
	var slow atomic.Bool
	begun := make(chan struct{})
	subject := s.subject(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		address.Store(r.Host)
		switch r.URL.Path {
		case "/leaves-its-body": // the server goes on reading it when the handler has ended
		case "/slow":
			slow.Store(true)
			close(begun)
			<-r.Context().Done()
			time.Sleep(100 * time.Millisecond) // it tidies up
			slow.Store(false)
		default:
			handler.ServeHTTP(w, r)
		}
	}))
	var mu sync.Mutex
	var conns []net.Conn
	subject.Rotate = func(signing.Secret) { // which is tried last
		host := address.Load().(string)
		for path, bytes := range map[string]string{"/leaves-its-body": "100", "/slow": "0"} {
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", host)
			require.NoError(t, err)
			_, err = conn.Write([]byte("POST " + path + " HTTP/1.1\r\nHost: " + host + "\r\nContent-Length: " + bytes + "\r\n\r\n"))
			require.NoError(t, err)
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
		}
		<-begun
	}
	closed := func() {
		mu.Lock()
		defer mu.Unlock()
		for _, conn := range conns {
			_ = conn.Close()
		}
	}
	defer closed()
	defer time.AfterFunc(time.Minute, func() {
		t.Error("Hostile waits for a connection")
		closed()
	}).Stop()
	receivertest.Hostile(&reporting{told: map[string]bool{}}, subject, &receivertest.HostileConfig{Flood: flood})
	require.False(t, slow.Load(), "the handler is still at work")
}
