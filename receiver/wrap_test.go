package receiver_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/receiver"
)

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		name   string
		next   func(w http.ResponseWriter)
		status int
		body   string
		header string
		stays  bool
	}{
		{"nothing written", func(http.ResponseWriter) {}, 200, `{"result":"applied"}`, "", true},
		{"200", func(w http.ResponseWriter) { _, _ = io.WriteString(w, "fine") }, 200, "fine", "", true},
		{"204", func(w http.ResponseWriter) { w.Header().Set("X-A", "b"); w.WriteHeader(204) }, 204, "", "b", true},
		{"informational", func(w http.ResponseWriter) { w.WriteHeader(103); w.WriteHeader(201); w.WriteHeader(500) }, 201, "", "", true},
		{"302", func(w http.ResponseWriter) {
			w.Header().Set("X-A", "b")
			w.WriteHeader(302)
			w.Header().Set("X-A", "late")
		}, 302, "", "b", false},
		{"400", func(w http.ResponseWriter) { http.Error(w, "no", 400) }, 400, "no\n", "", false},
		{"500", func(w http.ResponseWriter) { w.WriteHeader(500) }, 500, "", "", false},
		{"503", func(w http.ResponseWriter) { w.WriteHeader(503) }, 503, "", "", false},
		{"no status at all", func(w http.ResponseWriter) { w.WriteHeader(1000) }, 500, "", "", false},
		{"too much", func(w http.ResponseWriter) {
			n, err := w.Write(make([]byte, 64<<10))
			if n != 64<<10 || err != nil {
				panic(err)
			}
			if _, err := w.Write([]byte("x")); err == nil {
				panic("no error")
			}
		}, 500, `{"error":"Internal Server Error"}`, "", false},
		{"panic", func(w http.ResponseWriter) { w.WriteHeader(200); panic("no") }, 500, `{"error":"Internal Server Error"}`, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, _ := onSQLite(t)
			var failed *receiver.Error
			var log bytes.Buffer
			rcv := b.receiver(t, &receiver.Config{
				Hooks:  receiver.Hooks{Failed: func(_ context.Context, _ receiver.Event, err *receiver.Error) { failed = err }},
				Logger: slog.New(slog.NewTextHandler(&log, nil)),
			})
			ev := newEvent(1)
			req := newSender(t).Request(ev).Chunked()
			h := rcv.WrapState(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				tx, got, ok := rcv.From(r.Context())
				require.True(t, ok)
				require.Equal(t, ev.ID, got.ID)
				body, err := io.ReadAll(r.Body)
				require.NoError(t, err)
				require.Equal(t, req.Message().Body, body)
				require.Equal(t, int64(len(body)), r.ContentLength)
				require.NoError(t, b.effect(r.Context(), tx, got))
				c.next(w)
			}))
			a := req.Serve(h)
			require.Equal(t, c.status, a.Status)
			require.Equal(t, c.body, string(a.Body))
			require.Equal(t, c.header, a.Header.Get("X-A"))
			if c.stays {
				require.Equal(t, state{Marker: true, Effects: 1, Version: 1}, b.state(t, ev))
				require.Equal(t, `{"result":"duplicate"}`, string(req.Serve(h).Body))
			} else {
				require.Zero(t, b.rows(t))
				require.Equal(t, c.status, failed.Status())
				require.Zero(t, failed.RetryAfter())
				require.Empty(t, a.Header.Get("Retry-After"))
				require.Contains(t, log.String(), fmt.Sprintf("level=ERROR msg=\"receiver: event not applied\" event_id=%s", ev.ID))
				require.Contains(t, log.String(), fmt.Sprintf("status=%d", c.status))
			}
		})
	}
}

// A transaction that is run again finds nothing left of its first run.
func TestWrapRunsAgain(t *testing.T) {
	b, _ := onSQLite(t)
	inTx := failsAtCommit(b.inTx, 1, dedup.ErrRetryTx)
	rcv := newReceiver(t, inTx, b.store, nil)
	runs := 0
	h := rcv.WrapState(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		runs++
		tx, ev, _ := rcv.From(r.Context())
		require.NoError(t, b.effect(r.Context(), tx, ev))
		body, _ := io.ReadAll(r.Body)
		w.Header().Add("X-Run", "1")
		_, _ = io.WriteString(w, strings.Repeat("x", len(body)))
	}))
	req := newSender(t).Request(newEvent(1))
	a := req.Serve(h)
	require.Equal(t, 2, runs)
	require.Equal(t, []string{"1"}, a.Header["X-Run"])
	require.Len(t, a.Body, len(req.Message().Body))
}

func TestFromElsewhere(t *testing.T) {
	b, _ := onSQLite(t)
	rcv, other := b.receiver(t, nil), b.receiver(t, nil)
	tx, _, ok := rcv.From(t.Context())
	require.False(t, ok)
	require.Nil(t, tx)
	h := rcv.WrapState(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _, ok := other.From(r.Context())
		require.False(t, ok, "another receiver's transaction")
		var mine *sql.Tx
		mine, _, ok = rcv.From(r.Context())
		require.True(t, ok)
		require.NotNil(t, mine)
	}))
	require.Equal(t, receiver.Applied, newSender(t).Request(newEvent(1)).Serve(h).Result)
}
