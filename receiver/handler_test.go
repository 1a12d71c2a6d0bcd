package receiver_test

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
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
	var log buffer
	h := b.receiver(t, &receiver.Config{Logger: log.logger()}).Handler(receiver.State(func(ctx context.Context, tx *memory.Tx, got receiver.Event) error {
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
	require.Contains(t, log.String(), `level=INFO msg="receiver: event not applied"`, "nothing is wrong")
	require.Equal(t, receiver.Applied, snd.Request(receivertest.NewEvent("subscriber", "sub_2", 1)).Serve(h).Result)
	close(leave)
	require.Equal(t, receiver.Applied, (<-first).Result)
	require.Equal(t, receiver.Duplicate, snd.Request(ev).Serve(h).Result)
}

// The log says what an event is about that is not applied, and who was too slow.
func TestFailuresAreLogged(t *testing.T) {
	b := onMemory()
	var log buffer
	handler := func(timeout time.Duration, work receiver.HandlerFunc[*memory.Tx]) http.Handler {
		return b.receiver(t, &receiver.Config{Logger: log.logger(), Timeout: timeout}).Handler(receiver.Fact(work))
	}
	about := func(message string) string {
		return `msg="receiver: event ` + message + `".* object_type=subscriber object_id=sub_1 version=1 .*`
	}
	snd := newSender(t)
	post := func(h http.Handler) int {
		return snd.Request(receivertest.NewEvent("subscriber", "sub_1", 1)).Serve(h).Status
	}
	require.Equal(t, 500, post(handler(0, func(context.Context, *memory.Tx, receiver.Event) error { return errors.New("no such shelf") })))
	require.Regexp(t, about("not applied")+`error="no such shelf"`, log.String())
	require.Equal(t, 200, post(handler(0, func(context.Context, *memory.Tx, receiver.Event) error {
		return receiver.Permanent(errors.New("never"))
	})))
	require.Regexp(t, about("set aside as a dead letter")+`error=never`, log.String())
	require.Equal(t, 503, post(handler(10*time.Millisecond, func(ctx context.Context, _ *memory.Tx, _ receiver.Event) error {
		<-ctx.Done()
		return ctx.Err()
	})))
	require.Regexp(t, about("not applied")+`reason=timeout .*error="the handler did not end within Config.Timeout: context deadline exceeded"`, log.String())
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
