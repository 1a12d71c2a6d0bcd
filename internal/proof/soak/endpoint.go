package soak

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/receiver"
)

// endpoints is the receivers' side: one server on loopback, a slot for each path, and
// real receivers behind it.
type endpoints struct {
	w      *witness
	db     *applying
	server *http.Server
	url    string
	closed string // a URL where nobody listens
	calm   atomic.Bool
	plain  http.Handler
	shared http.Handler // whose requests share transactions

	mu    sync.Mutex
	slots map[string]*slot
	rng   *rand.Rand
}

func newEndpoints(ctx context.Context, w *witness, db *applying, cfg *Config, log *slog.Logger) (*endpoints, error) {
	h := &endpoints{w: w, db: db, slots: map[string]*slot{}, rng: cfg.rng("endpoints")}
	secrets, err := receiver.NewSecrets(receiver.NameInPath, h.lookup, &receiver.SecretsConfig{TTL: time.Millisecond, NegativeTTL: time.Millisecond})
	if err != nil {
		return nil, err
	}
	group, err := receiver.NewGroup(receiver.SQL(db.db, nil), receiver.SQLExec, nil)
	if err != nil {
		return nil, err
	}
	handlers := make([]http.Handler, 2)
	for i, inTx := range []receiver.InTx[*sql.Tx]{receiver.SQL(db.db, nil), group.InTx} {
		rcv, err := receiver.New(secrets, inTx, db.dedup, "", &receiver.Config{
			Retention: cfg.retention().Receivers, Reach: cfg.retention().Reach, Horizon: cfg.horizon(), Logger: log,
			Hooks: receiver.Hooks{
				Applied:      func(context.Context, receiver.Event) { w.count("events applied") },
				Duplicate:    func(context.Context, receiver.Event) { w.count("duplicates at receivers") },
				Stale:        func(context.Context, receiver.Event) { w.count("stale events at receivers") },
				DeadLettered: func(context.Context, receiver.Event, error) { w.count("dead letters at receivers") },
				Failed:       func(context.Context, receiver.Event, *receiver.Error) { w.count("failures at receivers") },
				Rejected: func(_ context.Context, err *receiver.Error) {
					if err.Reason != receiver.ReasonTruncated && err.Reason != receiver.ReasonSecrets {
						w.add("signature", "a receiver refused what was posted: %v", err)
					}
				},
			},
		})
		if err != nil {
			return nil, err
		}
		handlers[i] = rcv.Handler(receiver.State(h.apply))
	}
	h.plain, h.shared = handlers[0], handlers[1]
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h.closed = "http://127.0.0.1:1/hooks/" // a port that no other process gets by chance
	h.url = "http://" + listener.Addr().String() + "/hooks/"
	h.server = &http.Server{Handler: h, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelInfo)}
	go func() { _ = h.server.Serve(listener) }()
	return h, nil
}

func (h *endpoints) close() { _ = h.server.Close() }

// add makes a slot.
func (h *endpoints) add(s *slot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.rng = rand.New(rand.NewPCG(h.rng.Uint64(), 1))
	s.url = h.url + s.name
	h.slots[s.name] = s
}

func (h *endpoints) slot(name string) *slot {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.slots[name]
}

// all returns the slots.
func (h *endpoints) all() (list []*slot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.slots {
		list = append(list, s)
	}
	return list
}

// remove drops a slot whose subscription is gone.
func (h *endpoints) remove(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.slots, name)
}

// lookup returns the secrets for a receiver.
func (h *endpoints) lookup(_ context.Context, name string) (receiver.Keyholder, error) {
	s := h.slot(name)
	if s == nil {
		return receiver.Keyholder{}, receiver.ErrUnknownKey
	}
	return receiver.Keyholder{Scope: name, Keys: s.owner.keyring()}, nil
}

// poisoned tells which events can never be applied.
func poisoned(nonce uint64) bool { return nonce%97 == 0 }

// apply is the application's function. It stores an effect for each event, and the
// newest version of each object. Now and then it fails after both.
func (h *endpoints) apply(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
	c, err := parse(ev.Body)
	if err != nil {
		return receiver.Permanent(err)
	}
	if ours(ev.Type) && poisoned(c.Data.Nonce) {
		return receiver.Permanent(errDrawn) // poison: the same every time
	}
	object := ev.Object.Type + "/" + ev.Object.ID
	var stored int64
	err = tx.QueryRowContext(ctx, h.db.q("SELECT version FROM soak_states WHERE scope = $1 AND object = $2"), ev.Scope, object).Scan(&stored)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if stored >= ev.Version {
		h.w.add("I10", "version %d of %s was applied at %s over version %d", ev.Version, object, ev.Scope, stored)
	}
	err = h.db.exec(ctx, tx, "INSERT INTO soak_states VALUES ($1, $2, $3) ON CONFLICT (scope, object) DO UPDATE SET version = $3", ev.Scope, object, ev.Version)
	if err != nil {
		return err
	}
	if err := h.db.exec(ctx, tx, "INSERT INTO soak_effects VALUES ($1, $2)", ev.Scope, ev.ID); err != nil {
		return err
	}
	if h.calm.Load() {
		return nil
	}
	switch h.intN(60) {
	case 0:
		return errDrawn
	case 1:
		panic(errDrawn)
	}
	return nil
}

func (h *endpoints) intN(n int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rng.IntN(n)
}

// ServeHTTP reports a post to the witness, and reacts as the slot's temper says.
func (h *endpoints) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		h.w.count("posts that broke off")
		return
	}
	h.w.count("posts")
	name := r.URL.Path[len("/hooks/"):]
	s := h.slot(name)
	number, _ := strconv.Atoi(r.Header.Get("Webhook-Attempt"))
	signed, _ := strconv.ParseInt(r.Header.Get("Webhook-Timestamp"), 10, 64)
	p := h.w.posted(name, number, signed, body)
	if s == nil {
		h.w.add("I1", "a post came to %s after its subscription was gone", name)
		http.NotFound(rw, r)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	inner := h.plain
	if len(name)%2 == 0 {
		inner = h.shared
	}
	drawn := none
	if !h.calm.Load() {
		drawn = s.draw()
	}
	switch drawn {
	case failing:
		h.w.count("faults: 5xx")
		status := http.StatusInternalServerError + number%4
		h.w.note(p, func(p *post) { p.status = status })
		http.Error(rw, "in trouble", status)
	case asking:
		h.w.count("faults: 429 with Retry-After")
		h.w.note(p, func(p *post) {
			p.status, p.retryAfter, p.answered = http.StatusTooManyRequests, time.Second, time.Now()
		})
		rw.Header().Set("Retry-After", "1")
		http.Error(rw, "too much", http.StatusTooManyRequests)
	case resetting:
		h.w.count("faults: connection reset")
		reset(rw)
	case hanging:
		h.w.count("faults: no answer in time")
		<-r.Context().Done()
	case losing:
		h.w.count("faults: answer lost after the commit")
		inner.ServeHTTP(httptest.NewRecorder(), r)
		reset(rw)
	case crawling:
		h.w.count("faults: slow answers")
		inner.ServeHTTP(&watched{ResponseWriter: rw, h: h, r: r, scope: name, post: p}, r)
		for range 5 {
			if _, err := io.WriteString(rw, " "); err != nil {
				return
			}
			_ = http.NewResponseController(rw).Flush()
			select {
			case <-r.Context().Done():
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	case none:
		inner.ServeHTTP(&watched{ResponseWriter: rw, h: h, r: r, scope: name, post: p}, r)
	}
}

// reset breaks the connection off with a TCP RST.
func reset(rw http.ResponseWriter) {
	conn, _, err := http.NewResponseController(rw).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// marked tells whether an event has a marker.
func (a *applying) marked(ctx context.Context, scope, id string) (bool, error) {
	n, err := column[int64](ctx, a.base, "SELECT count(*) FROM surehook_dedup_markers WHERE scope = $1 AND id = $2", scope, id)
	return err == nil && n[0] > 0, err
}

// pruneMarkers removes the markers from before a time.
func (a *applying) pruneMarkers(ctx context.Context, before time.Time) error {
	_, err := dedup.Prune(ctx, receiver.SQL(a.db, nil), a.dedup, before, 0)
	if err != nil {
		return fmt.Errorf("pruning markers: %w", err)
	}
	return nil
}
