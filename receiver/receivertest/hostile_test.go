package receivertest_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
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

// rewriting changes the answers of a correct handler.
type rewriting struct {
	http.ResponseWriter
	status func(int) int
	more   string
}

func (w rewriting) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w rewriting) WriteHeader(status int) {
	status = w.status(status)
	w.ResponseWriter.WriteHeader(status)
	if status == 401 {
		_, _ = io.WriteString(w.ResponseWriter, w.more)
	}
}

// Hostile reports each broken promise, and no others.
func TestHostileReports(t *testing.T) {
	t.Parallel()
	instead := func(of, other int) func(*shop, http.Handler) http.Handler {
		return func(_ *shop, next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				next.ServeHTTP(rewriting{ResponseWriter: w, status: func(status int) int {
					if status == of {
						return other
					}
					return status
				}}, r)
			})
		}
	}
	for name, c := range map[string]struct {
		around func(s *shop, next http.Handler) http.Handler
		want   []string
	}{
		"correct":                 {nil, nil},
		"busy is 500":             {busy(func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) }), []string{receivertest.PromiseBusy}},
		"busy has no Retry-After": {busy(func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }), []string{receivertest.PromiseBusy}},
		"malformed is 200":        {instead(400, 200), []string{receivertest.PromiseMalformed}},
		"forged is 403":           {instead(401, 403), []string{receivertest.PromiseVerified}},
		"leaks": {func(s *shop, next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				next.ServeHTTP(rewriting{w, func(status int) int { return status }, s.secret.Reveal()}, r)
			})
		}, []string{receivertest.PromiseSecret}},
		"reads everything": {func(_ *shop, next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), failingBody{err}))
				next.ServeHTTP(w, r)
			})
		}, []string{receivertest.PromiseBodyBounds}},
		"duplicates are conflicts": {func(_ *shop, next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				next.ServeHTTP(&conflicting{ResponseWriter: w}, r)
			})
		}, []string{receivertest.PromiseDuplicate}},
		"accepts whatever fails": {instead(500, 200), []string{receivertest.PromiseCommit}},
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t.TempDir())
			t.Cleanup(func() { _ = s.db.Close() })
			rcv, err := receiver.New(s.verifier, receiver.SQL(s.db, nil), sqlite.New(), "default", &receiver.Config{Logger: quiet})
			require.NoError(t, err)
			handler := rcv.Handler(receiver.State(func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error { return ship(tx, order{ID: ev.ID}) }))
			if c.around != nil {
				handler = c.around(s, handler)
			}
			told := &reporting{told: map[string]bool{}}
			receivertest.Hostile(told, s.subject(handler), &receivertest.HostileConfig{Flood: flood})
			var broken []string
			for _, promise := range slices.Sorted(maps.Keys(told.told)) {
				broken = append(broken, strings.TrimPrefix(promise, "receivertest: broken: "))
			}
			if name == "duplicates are conflicts" { // also of concurrent ones, if they come late enough
				broken = slices.DeleteFunc(broken, func(promise string) bool { return promise == receivertest.PromiseBusy })
			}
			require.Equal(t, c.want, broken)
		})
	}
}

// If a test is at fault for nothing being delivered, Hostile says how.
func TestHostileSaysWhatIsWrongWithATest(t *testing.T) {
	t.Parallel()
	s := openShop(t.TempDir())
	t.Cleanup(func() { _ = s.db.Close() })
	rcv, err := receiver.New(s.verifier, receiver.SQL(s.db, nil), sqlite.New(), "default", &receiver.Config{Logger: quiet})
	require.NoError(t, err)
	ships := func(_ context.Context, tx *sql.Tx, ev receiver.Event) error { return ship(tx, order{ID: ev.ID}) }
	never := func(context.Context, *sql.Tx, receiver.Event) error { return receiver.Permanent(io.ErrUnexpectedEOF) }
	orders, err := receiver.Router(receiver.OnFact("order.*", func(context.Context, *sql.Tx, receiver.Typed[order]) error { return nil }))
	require.NoError(t, err)
	elsewhere := http.NewServeMux()
	elsewhere.Handle("POST /hooks", rcv.Handler(receiver.State(ships)))
	stranger := s.subject(rcv.Handler(receiver.State(ships)))
	stranger.Secret = signing.GenerateSecret()
	for says, subject := range map[string]receivertest.Subject{
		"no route for subscriber.created":         s.subject(rcv.Handler(orders)),
		"can never apply this subscriber.created": s.subject(rcv.Handler(receiver.State(never))),
		"The handler is an inbox":                 s.subject(rcv.RecordHandler(func(context.Context, *sql.Tx, receiver.Event) (bool, error) { return true, nil })),
		"The path is /webhooks: ":                 s.subject(elsewhere),
		"Subject.Secret must be":                  stranger,
	} {
		told := &reporting{told: map[string]bool{}}
		receivertest.Hostile(told, subject, nil)
		require.Contains(t, told.last, "the rest is not tried. ")
		require.Contains(t, told.last, says)
	}
}

const flood = 16

// busy answers the later requests of a flood. It knows a flood by its one event, because no
// other case sends an event this often. It does not depend on requests that overlap in time.
func busy(answer func(http.ResponseWriter)) func(*shop, http.Handler) http.Handler {
	var mu sync.Mutex
	seen := map[string]int{}
	return func(_ *shop, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			id := r.Header.Get("Webhook-Id")
			seen[id]++
			n := seen[id]
			mu.Unlock()
			if n > flood/2 && n <= flood {
				answer(w)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

type failingBody struct{ err error }

func (f failingBody) Read([]byte) (int, error) {
	if f.err == nil {
		return 0, io.EOF
	}
	return 0, f.err
}

// conflicting answers duplicates and stale events with 409, as many applications do.
type conflicting struct {
	http.ResponseWriter
	status int
}

func (w *conflicting) Unwrap() http.ResponseWriter { return w.ResponseWriter }
func (w *conflicting) WriteHeader(status int)      { w.status = status }
func (w *conflicting) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("duplicate")) || bytes.Contains(p, []byte("stale")) {
		w.status = http.StatusConflict
	}
	w.ResponseWriter.WriteHeader(w.status)
	return w.ResponseWriter.Write(p)
}

// Both secrets count while one is rotated, and Hostile finds this out. All ways into this
// module are correct, also behind a router.
func TestHostileCorrect(t *testing.T) {
	t.Parallel()
	for name, rotating := range map[string]bool{"wrap and rotation": true, "group without rotation": false} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t.TempDir())
			t.Cleanup(func() { _ = s.db.Close() })
			group, err := receiver.NewGroup(receiver.SQL(s.db, nil), receiver.SQLExec, nil)
			require.NoError(t, err)
			verifier := &renewed{}
			verifier.Store(s.verifier)
			rcv, err := receiver.New(verifier, group.InTx, sqlite.New(), "default", &receiver.Config{Logger: quiet})
			require.NoError(t, err)
			subject := s.subject(rcv.Handler(receiver.State(func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error { return ship(tx, order{ID: ev.ID}) })))
			if rotating {
				subject.Handler = rcv.WrapState(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					tx, ev, _ := rcv.From(r.Context())
					if ship(tx, order{ID: ev.ID}) != nil {
						w.WriteHeader(http.StatusInternalServerError)
					}
				}))
			}
			subject.Rotate = func(next signing.Secret) {
				if !rotating {
					return
				}
				both, err := signing.NewVerifier(s.keys(next), nil)
				require.NoError(t, err)
				verifier.Store(both)
			}
			effects := subject.Effects
			subject.Effects = func(ctx context.Context, ev receivertest.Event) (int, error) {
				// A look can take a second on a slow machine, and no promise is broken by that.
				deadline, bounded := ctx.Deadline()
				if !bounded || deadline.Before(time.Now().Add(2*time.Second)) {
					t.Errorf("a look at the effects may take until %v only", deadline)
				}
				return effects(ctx, ev)
			}
			routes := http.NewServeMux()
			routes.Handle("POST /hooks/{sender}", subject.Handler)
			subject.Handler = routes
			told := &reporting{told: map[string]bool{}}
			receivertest.Hostile(told, subject, &receivertest.HostileConfig{Seed: 7, Sender: receivertest.SenderConfig{Path: "/hooks/billing?v=2"}})
			if rotating {
				require.Empty(t, told.told)
			} else {
				require.Equal(t, map[string]bool{"receivertest: broken: " + receivertest.PromiseRotation: true}, told.told)
			}
		})
	}
}

type renewed struct {
	atomic.Pointer[signing.Verifier]
}

func (v *renewed) Precheck(h http.Header) error { return v.Load().Precheck(h) }
func (v *renewed) Verify(m signing.Message) (signing.Verified, error) {
	return v.Load().Verify(m)
}

// Hostile tries a handler of another sender's events with that sender's scheme and bodies.
func TestHostileForeign(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		scheme signing.Scheme
		encode string
	}{
		{signing.Stripe(), `{"id":%q,"type":"invoice.paid"}`},
		{signing.GitHub(), `{"deployment":%q}`}, // it has no id, and signs no time
	} {
		t.Run(c.scheme.Name(), func(t *testing.T) {
			s := openShop(t.TempDir())
			t.Cleanup(func() { _ = s.db.Close() })
			verifier, err := signing.NewVerifier(s.keys(), &signing.VerifierConfig{Schemes: []signing.Scheme{c.scheme}, Deduplicated: true})
			require.NoError(t, err)
			rcv, err := receiver.New(verifier, receiver.SQL(s.db, nil), sqlite.New(), "default", &receiver.Config{Logger: quiet, Envelope: &receiver.Envelope{}})
			require.NoError(t, err)
			handler := rcv.Handler(receiver.State(func(_ context.Context, tx *sql.Tx, ev receiver.Event) error {
				var id string
				if _, err := fmt.Sscanf(string(ev.Body), c.encode, &id); err != nil {
					return err
				}
				return ship(tx, order{ID: id})
			}))
			receivertest.Hostile(t, s.subject(handler), &receivertest.HostileConfig{Flood: 16, Unversioned: true, Sender: receivertest.SenderConfig{
				Schemes: []signing.Scheme{c.scheme},
				Encode:  func(ev receivertest.Event) ([]byte, error) { return fmt.Appendf(nil, c.encode, ev.ID), nil },
			}})
		})
	}
}
