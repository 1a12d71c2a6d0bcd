package receiver_test

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/receiver"
)

// While the SQLite file is not where it was, nothing is answered with 2xx: neither an event, nor
// its duplicate, nor one that is to be set aside. SQLite would go on, and the effects would be
// gone with the process.
func TestFileIsRemoved(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" { // it does not let go of a file that is open
		return
	}
	path := filepath.Join(t.TempDir(), "app.db")
	b, db := inFile(t, path)
	db.SetMaxOpenConns(1) // a new connection would make a file
	snd, rcv := newSender(t), b.receiver(t, nil)
	applied := newEvent(7)
	handler := rcv.Handler(receiver.State(b.effect))
	require.Equal(t, http.StatusOK, snd.Request(applied).Serve(handler).Status)
	require.NoError(t, os.Rename(path, path+".moved"))
	require.Eventually(t, func() bool { return snd.Request(newEvent(8)).Serve(handler).Status == http.StatusServiceUnavailable }, time.Minute, time.Millisecond)
	answer := snd.Request(applied).Serve(handler)
	require.Equal(t, http.StatusServiceUnavailable, answer.Status, "a duplicate")
	require.NotEmpty(t, answer.Header.Get("Retry-After"))
	setsAside := rcv.Handler(receiver.State(func(context.Context, *sql.Tx, receiver.Event) error {
		return receiver.Permanent(errors.New("no such account"))
	}))
	require.Equal(t, http.StatusServiceUnavailable, snd.Request(newEvent(9)).Serve(setsAside).Status)
	require.NoError(t, os.Rename(path+".moved", path))
	require.Eventually(t, func() bool { return snd.Request(newEvent(10)).Serve(handler).Status == http.StatusOK }, time.Minute, time.Millisecond)
}
