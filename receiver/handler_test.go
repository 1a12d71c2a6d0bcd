package receiver_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
)

func TestEventIsWhatTheBodySays(t *testing.T) {
	b, _ := onSQLite(t)
	sent := newEvent(7)
	sent.Data = map[string]int{"n": 1}
	var got receiver.Event
	h := b.receiver(t, nil).Handler(receiver.State(func(_ context.Context, _ *sql.Tx, ev receiver.Event) error {
		got = ev
		return nil
	}))
	req := newSender(t).Request(sent).Attempt(3)
	require.Equal(t, receiver.Applied, req.Serve(h).Result)
	require.Equal(t, sent.ID, got.ID)
	require.Equal(t, "subscriber.updated", got.Type)
	require.Equal(t, dedup.Object{Type: "subscriber", ID: "sub_1"}, got.Object)
	require.Equal(t, int64(7), got.Version)
	require.Equal(t, sent.OccurredAt, got.OccurredAt)
	require.JSONEq(t, `{"n":1}`, string(got.Data))
	require.Equal(t, req.Message().Body, got.Body)
	require.Equal(t, "default", got.Scope)
	require.Equal(t, "key_1", got.Verified.KeyID)
	require.Equal(t, 3, got.Attempt)

	for _, attempt := range []string{"", "-1", "x", "1.5", "99999999999999999999"} {
		sent := newEvent(got.Version + 1)
		require.Equal(t, 200, newSender(t).Request(sent).Header("Webhook-Attempt", attempt).Serve(h).Status)
		require.Zero(t, got.Attempt, attempt)
	}
}

// Exactly one of 64 concurrent requests for one event has an effect.
func TestSameEventAtOnce(t *testing.T) {
	b, _ := onSQLite(t)
	srv := httptest.NewServer(b.receiver(t, nil).Handler(receiver.State(b.effect)))
	defer srv.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	snd := receivertest.NewSender(t, testSecret, &receivertest.SenderConfig{Client: client})
	ev := newEvent(1)
	results := make([]receivertest.Answer, 64)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			<-start
			var err error
			results[i], err = snd.Request(ev).Post(t.Context(), srv.URL)
			if err != nil {
				t.Error(err)
			}
		})
	}
	close(start)
	wg.Wait()
	applied := 0
	for _, a := range results {
		switch {
		case a.Result == receiver.Applied:
			applied++
		case a.Status == 503:
			require.NotEmpty(t, a.Header.Get("Retry-After"))
		default:
			require.Equal(t, receiver.Duplicate, a.Result)
			require.Equal(t, 200, a.Status)
		}
	}
	require.Equal(t, 1, applied)
	require.Equal(t, state{Marker: true, Effects: 1, Version: 1}, b.state(t, ev))
}

// A second request for an event in work does not wait. Here the first would never end.
// Another event is not held up.
func TestInWorkHere(t *testing.T) {
	b := onMemory()
	entered, leave := make(chan struct{}), make(chan struct{})
	ev := newEvent(1)
	h := b.receiver(t, nil).Handler(receiver.State(func(ctx context.Context, tx *memory.Tx, got receiver.Event) error {
		if got.ID == ev.ID {
			close(entered)
			<-leave
		}
		return b.effect(ctx, tx, got)
	}))
	snd := newSender(t)
	first := make(chan receivertest.Answer, 1)
	go func() { first <- snd.Request(ev).Serve(h) }()
	<-entered
	second := snd.Request(ev).Serve(h)
	require.Equal(t, 503, second.Status)
	require.Equal(t, "5", second.Header.Get("Retry-After"))
	require.Equal(t, receiver.Applied, snd.Request(receivertest.NewEvent("subscriber", "sub_2", 1)).Serve(h).Result)
	close(leave)
	require.Equal(t, receiver.Applied, (<-first).Result)
	require.Equal(t, receiver.Duplicate, snd.Request(ev).Serve(h).Result)
}

// At-least-once delivery does its worst here, in parallel.
func TestShuffledDuplicates(t *testing.T) {
	b, _ := onSQLite(t)
	srv := httptest.NewServer(b.receiver(t, nil).Handler(receiver.State(b.effect)))
	defer srv.Close()
	snd := newSender(t)
	var events []receivertest.Event
	for v := range int64(20) {
		events = append(events, newEvent(v+1))
	}
	queue := make(chan receivertest.Event, 100)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for ev := range queue {
				for {
					a, err := snd.Request(ev).Post(t.Context(), srv.URL)
					if err != nil || a.Status != 503 && a.Status != 200 {
						t.Error(a.Status, err)
					}
					if a.Status != 503 {
						break
					}
				}
			}
		})
	}
	for _, ev := range receivertest.Shuffled(1, 3, events...) {
		queue <- ev
	}
	close(queue)
	wg.Wait()
	for _, ev := range events {
		s := b.state(t, ev)
		require.True(t, s.Marker)
		require.LessOrEqual(t, s.Effects, 1)
		require.Equal(t, int64(20), s.Version)
	}
	require.Equal(t, 1, b.effects(t, events[19].ID))
}

// A client that leaves while its event is being applied changes nothing.
func TestClientGone(t *testing.T) {
	b, _ := onSQLite(t)
	entered, leave, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	inner := b.receiver(t, nil).Handler(receiver.State(func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
		close(entered)
		<-leave
		err := b.effect(ctx, tx, ev)
		done <- errors.Join(err, ctx.Err())
		return err
	}))
	finished := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		context.AfterFunc(r.Context(), func() { close(leave) })
		inner.ServeHTTP(w, r)
		close(finished)
	}))
	defer srv.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-entered
		cancel()
	}()
	ev := newEvent(1)
	_, err := newSender(t).Request(ev).Post(ctx, srv.URL)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, <-done)
	<-finished
	require.Equal(t, state{Marker: true, Effects: 1, Version: 1}, b.state(t, ev))
}

// The database's answer to the commit comes before the sender's.
func TestAnswerAfterCommit(t *testing.T) {
	b, _ := onSQLite(t)
	var order []string
	inTx := func(ctx context.Context, fn func(*sql.Tx) error) error {
		err := b.inTx(ctx, fn)
		order = append(order, "committed")
		return err
	}
	rcv := newReceiver(t, inTx, b.store, &receiver.Config{Hooks: receiver.Hooks{
		Applied: func(context.Context, receiver.Event) { order = append(order, "hook") },
	}})
	snd := newSender(t)
	for name, h := range map[string]http.Handler{
		"handler": rcv.Handler(receiver.State(b.effect)),
		"wrap": rcv.WrapState(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			tx, ev, _ := rcv.From(r.Context())
			w.Header().Set("X-Early", "1")
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, "early")
			require.NoError(t, b.effect(r.Context(), tx, ev))
		})),
	} {
		order = nil
		watched := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(watchedWriter{w, func(what string) { order = append(order, what) }}, r)
		})
		ev := receivertest.NewEvent("subscriber", name, 1)
		require.Equal(t, 2, snd.Request(ev).Serve(watched).Status/100, name)
		require.Equal(t, []string{"committed", "hook", "header", "body"}, order, name)
	}
}

type watchedWriter struct {
	http.ResponseWriter
	saw func(string)
}

func (w watchedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w watchedWriter) WriteHeader(status int) {
	w.saw("header")
	w.ResponseWriter.WriteHeader(status)
}

func (w watchedWriter) Write(p []byte) (int, error) {
	w.saw("body")
	return w.ResponseWriter.Write(p)
}

// postStalling posts a body whose rest never comes, until the test ends.
func postStalling(t *testing.T, url string, req *receivertest.Request) *http.Response {
	t.Helper()
	m := req.Message()
	body, stall := io.Pipe()
	t.Cleanup(func() { _ = stall.Close() })
	go func() { _, _ = stall.Write(m.Body[:10]) }()
	r, err := http.NewRequest("POST", url, body)
	require.NoError(t, err)
	r.Header, r.ContentLength = m.Header, int64(len(m.Body))
	res, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	return res
}

// On a real connection a body that stalls is cut off by the deadline, and the
// answer still comes.
func TestStalledBody(t *testing.T) {
	b, _ := onSQLite(t)
	srv := httptest.NewServer(b.receiver(t, &receiver.Config{Timeout: 50 * time.Millisecond}).Handler(receiver.State(b.effect)))
	t.Cleanup(srv.Close)
	require.Equal(t, 408, postStalling(t, srv.URL, newSender(t).Request(newEvent(1))).StatusCode)
	require.Zero(t, b.rows(t))
}

// A request that is refused for its header alone is answered at once, however slow the
// body, and does not keep the connection for longer than the body's time.
func TestStalledBodyOfARefusedRequest(t *testing.T) {
	b, _ := onSQLite(t)
	srv := httptest.NewServer(b.receiver(t, &receiver.Config{Timeout: time.Hour}).Handler(receiver.State(b.effect)))
	t.Cleanup(srv.Close)
	require.Equal(t, 401, postStalling(t, srv.URL, newSender(t).Request(newEvent(1)).Skewed(time.Hour)).StatusCode)

	closed := make(chan struct{})
	srv = httptest.NewUnstartedServer(b.receiver(t, &receiver.Config{Timeout: 50 * time.Millisecond}).Handler(receiver.State(b.effect)))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			close(closed)
		}
	}
	srv.Start()
	t.Cleanup(srv.Close)
	// The request is written by hand, because an http.Client would close the connection
	// itself.
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{")
	require.NoError(t, err)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.Equal(t, 415, res.StatusCode)
	<-closed
}

// A request that is refused for its header is refused without reading the body.
func TestHeaderBeforeBody(t *testing.T) {
	b, _ := onSQLite(t)
	h := b.receiver(t, &receiver.Config{MaxBodyBytes: 1000}).Handler(receiver.State(b.effect))
	unread := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = unreadable{t}
		h.ServeHTTP(w, r)
	})
	snd := newSender(t)
	for status, req := range map[int]*receivertest.Request{
		400: snd.Request(newEvent(1)).Without("Webhook-Timestamp"),
		401: snd.Request(newEvent(1)).Skewed(-time.Hour),
		405: snd.Request(newEvent(1)).Method("GET"),
		413: snd.Request(newEvent(1)).Padded(1001),
		415: snd.Request(newEvent(1)).Header("Content-Encoding", "gzip"),
	} {
		require.Equal(t, status, req.Serve(unread).Status)
	}
}

type unreadable struct{ t *testing.T }

func (u unreadable) Close() error { return nil }
func (u unreadable) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

// The server's own, shorter limit stays in force.
func TestServersReadTimeoutStays(t *testing.T) {
	b, _ := onSQLite(t)
	srv := httptest.NewUnstartedServer(b.receiver(t, &receiver.Config{Timeout: time.Hour}).Handler(receiver.State(b.effect)))
	srv.Config.ReadTimeout = 50 * time.Millisecond
	srv.Start()
	defer srv.Close()
	a, err := newSender(t).Request(newEvent(1)).Slow(5*time.Millisecond).Post(t.Context(), srv.URL)
	require.NoError(t, err)
	require.Equal(t, 408, a.Status)
}

// The deadline of one request ends neither the next request on its connection nor the work
// on the same request.
func TestDeadlineIsCleared(t *testing.T) {
	b, _ := onSQLite(t)
	const timeout = 100 * time.Millisecond
	var remote sync.Map
	conns := 0
	inner := b.receiver(t, &receiver.Config{Timeout: timeout}).Handler(receiver.State(b.effect))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, seen := remote.LoadOrStore(r.RemoteAddr, true); !seen {
			conns++
		}
		inner.ServeHTTP(w, r)
		if r.Header.Get("X-Linger") != "" {
			select {
			case <-r.Context().Done():
				t.Error("the request ended with the deadline of its body")
			case <-time.After(2 * timeout):
			}
		}
	}))
	defer srv.Close()
	snd := newSender(t)
	for v := range int64(2) {
		a, err := snd.Request(newEvent(v+1)).Header("X-Linger", "1").Post(t.Context(), srv.URL)
		require.NoError(t, err)
		require.Equal(t, receiver.Applied, a.Result)
	}
	require.Equal(t, 1, conns)
}

// No deadline outlives the body, with any ResponseWriter.
func TestDeadlineIsTakenBack(t *testing.T) {
	b, _ := onSQLite(t)
	h := b.receiver(t, nil).Handler(receiver.State(b.effect))
	var set []time.Time
	start := time.Now()
	recording := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(deadlines{w, &set}, r)
	})
	require.Equal(t, 200, newSender(t).Request(newEvent(1)).Serve(recording).Status)
	require.Len(t, set, 2)
	require.WithinDuration(t, start.Add(8*time.Second), set[0], time.Second)
	require.Zero(t, set[1])
}

type deadlines struct {
	http.ResponseWriter
	set *[]time.Time
}

func (d deadlines) SetReadDeadline(at time.Time) error {
	*d.set = append(*d.set, at)
	return nil
}

// Without a connection's deadline the clock is looked at between reads.
func TestSlowBodyWithoutDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := onMemory()
		log := new(buffer)
		h := b.receiver(t, &receiver.Config{Logger: log.logger()}).Handler(receiver.State(b.effect))
		opaque := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(struct{ http.ResponseWriter }{w}, r)
		})
		start := time.Now()
		require.Equal(t, 408, newSender(t).Request(newEvent(1)).Slow(time.Second).Serve(opaque).Status)
		require.Equal(t, 8*time.Second, time.Since(start))
		require.Equal(t, 408, newSender(t).Request(newEvent(1)).Slow(time.Second).Serve(opaque).Status)
		require.Equal(t, 1, strings.Count(log.String(), "read deadline cannot be set"))
	})
}

// If something in front of the handler has read the body, the mistake is our own, and the
// log says so.
func TestBodyConsumed(t *testing.T) {
	b, _ := onSQLite(t)
	log := new(buffer)
	h := b.receiver(t, &receiver.Config{Logger: log.logger()}).Handler(receiver.State(b.effect))
	for _, closeIt := range []bool{false, true} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			if closeIt {
				_ = r.Body.Close()
			}
			h.ServeHTTP(w, r)
		}))
		a, err := newSender(t).Request(newEvent(1)).Post(t.Context(), srv.URL)
		srv.Close()
		require.NoError(t, err)
		require.Equal(t, 500, a.Status)
	}
	require.Equal(t, 2, strings.Count(log.String(), "reason=body_consumed"))
	require.Zero(t, b.rows(t))
}

// A body of unknown length that was read before looks like one that was posted empty. The
// log says that, and does not send anybody to compare secrets.
func TestBodyOfUnknownLengthConsumed(t *testing.T) {
	b := onMemory()
	log := new(buffer)
	h := b.receiver(t, &receiver.Config{Logger: log.logger()}).Handler(receiver.State(b.effect))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		h.ServeHTTP(w, r)
	}))
	defer srv.Close()
	a, err := newSender(t).Request(newEvent(1)).Chunked().Post(t.Context(), srv.URL)
	require.NoError(t, err)
	require.Equal(t, 401, a.Status)
	require.Contains(t, log.String(), "something has read it before it was verified")
	require.NotContains(t, log.String(), "compare the fingerprints")
}

// Another bound than MaxBodyBytes is not taken for it.
func TestBodyOverAnotherBound(t *testing.T) {
	b := onMemory()
	log := new(buffer)
	h := b.receiver(t, &receiver.Config{Logger: log.logger()}).Handler(receiver.State(b.effect))
	srv := httptest.NewServer(http.MaxBytesHandler(h, 1000))
	defer srv.Close()
	for _, over := range []int{2000, 2 << 20} {
		a, err := newSender(t).Request(newEvent(1)).Padded(over).Chunked().Post(t.Context(), srv.URL)
		require.NoError(t, err)
		require.Equal(t, 413, a.Status)
	}
	require.Equal(t, 2, strings.Count(log.String(), "a bound in front of the receiver ended the body after 1000 bytes"))
	require.NotContains(t, log.String(), "the most that MaxBodyBytes allows")
}

func TestTruncatedOnTheWire(t *testing.T) {
	b, _ := onSQLite(t)
	srv := httptest.NewServer(b.receiver(t, nil).Handler(receiver.State(b.effect)))
	defer srv.Close()
	for _, req := range []*receivertest.Request{
		newSender(t).Request(newEvent(1)).Truncated(),
		newSender(t).Request(newEvent(1)).Truncated().Chunked(),
	} {
		a, err := req.Post(t.Context(), srv.URL)
		require.NoError(t, err)
		require.Equal(t, 400, a.Status)
	}
	require.Zero(t, b.rows(t))
}

// http.ErrAbortHandler goes on to the server, after the rollback.
func TestAbortHandler(t *testing.T) {
	b, _ := onSQLite(t)
	rcv := b.receiver(t, nil)
	abort := func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
		_ = b.effect(ctx, tx, ev)
		panic(http.ErrAbortHandler)
	}
	require.PanicsWithValue(t, http.ErrAbortHandler, func() { newSender(t).Request(newEvent(1)).Serve(rcv.Handler(receiver.State(abort))) })
	require.Zero(t, b.rows(t))
	_, err := rcv.Receive(t.Context(), newSender(t).Request(newEvent(1)).Message(), receiver.State(abort))
	require.Error(t, err)
	require.Zero(t, b.rows(t))
}

func TestLargestDeclaredSize(t *testing.T) {
	b, _ := onSQLite(t)
	snd := newSender(t)
	m := snd.Request(newEvent(1)).Message()
	req := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(m.Body))
	req.Header, req.ContentLength = m.Header, math.MaxInt64
	w := httptest.NewRecorder()
	b.receiver(t, &receiver.Config{MaxBodyBytes: math.MaxInt64}).Handler(receiver.State(b.effect)).ServeHTTP(w, req)
	require.Equal(t, http.StatusOK, w.Code)
}
