package receiver_test

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
)

// After every kind of request there are as many goroutines and connections as before.
func TestNothingIsLeft(t *testing.T) {
	b, db := onSQLite(t)
	runtime.GC()
	before := runtime.NumGoroutine()
	rcv := b.receiver(t, &receiver.Config{Timeout: 100 * time.Millisecond, MaxBodyBytes: 1000})
	h := rcv.Handler(receiver.State(func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
		switch ev.Version {
		case 1:
			panic("no")
		case 2:
			return errors.New("no")
		case 3:
			return pgError("40001")
		case 4:
			<-ctx.Done()
		case 5:
			return receiver.Permanent(errors.New("no"))
		case 6:
			panic(http.ErrAbortHandler)
		}
		return b.effect(ctx, tx, ev)
	}))
	srv := httptest.NewServer(h)
	client := &http.Client{Transport: &http.Transport{}}
	snd := receivertest.NewSender(t, testSecret, &receivertest.SenderConfig{Client: client})
	var wg sync.WaitGroup
	for i := range int64(40) {
		wg.Go(func() {
			ev := newEvent(i % 8)
			req := snd.Request(ev)
			switch i % 5 {
			case 1:
				req.Slow(5 * time.Millisecond)
			case 2:
				req.Truncated()
			case 3:
				req.Padded(2000).Chunked()
			}
			ctx := t.Context()
			if i%7 == 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 10*time.Millisecond)
				defer cancel()
			}
			_, _ = req.Post(ctx, srv.URL)
		})
	}
	wg.Wait()
	srv.Close()
	client.CloseIdleConnections()
	// database/sql rolls back beside the request whose time is over.
	for deadline := time.Now().Add(time.Minute); db.Stats().InUse > 0 || runtime.NumGoroutine() > before; runtime.Gosched() {
		require.True(t, time.Now().Before(deadline), "%d connections in use; %d goroutines, %d before", db.Stats().InUse, runtime.NumGoroutine(), before)
	}
}
