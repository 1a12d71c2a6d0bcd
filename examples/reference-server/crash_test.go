package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/killtest"
	"github.com/surehook/surehook/internal/race"
)

// ledger is what a server has acknowledged.
type ledger struct {
	mu       sync.Mutex
	events   map[string]bool
	versions map[string]float64 // of subscribers
	jobs     []string
	answers  int
	until    int           // how many answers are to be there
	enough   chan struct{} // signalled when they are
}

// begin signals when there are n answers more, and something of each kind ever.
func (l *ledger) begin(n int) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until, l.enough = l.answers+n, make(chan struct{}, 1)
	return l.enough
}

// load makes changes, publishes events and submits jobs until ctx ends, and notes
// what was acknowledged. Errors of a server that was killed are expected.
func (l *ledger) load(ctx context.Context, base string, worker int, callback string) {
	for i := worker; ctx.Err() == nil; i++ {
		id := fmt.Sprintf("sub_w%d-%d", worker, i%7)
		switch i % 4 {
		case 0:
			// A request that was cut off may have had its effect: the version says.
			l.ask(ctx, http.MethodPost, base+"/subscribers", object{"id": id, "name": "new"}, func(o object) { l.version(id, o) })
		case 1:
			l.ask(ctx, http.MethodPatch, base+"/subscribers/"+id, object{"name": fmt.Sprint(i)}, func(o object) { l.version(id, o) })
		case 2:
			l.ask(ctx, http.MethodPost, base+"/events", object{"type": "order.paid", "object": object{"type": "order", "id": id}}, func(o object) {
				l.events[o["id"].(string)] = true
			})
		default:
			rows := []object{{"id": fmt.Sprintf("sub_i%d-%d", worker, i), "name": "imported"}, {"name": "anonymous"}}
			l.ask(ctx, http.MethodPost, base+"/jobs", object{"kind": "import_subscribers", "input": object{"subscribers": rows}, "callback_url": callback}, func(o object) {
				l.jobs = append(l.jobs, o["id"].(string))
			})
		}
	}
}

func (l *ledger) version(id string, o object) {
	l.versions[id] = max(l.versions[id], o["version"].(float64))
}

func (l *ledger) ask(ctx context.Context, method, url string, body object, acknowledged func(object)) {
	text, _ := json.Marshal(body)
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(text))
	if err != nil {
		return
	}
	req.Header.Set("Authorization", "Bearer "+operatorToken)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	var o object
	if err != nil || res.StatusCode >= 300 || json.Unmarshal(answer, &o) != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers++
	acknowledged(o)
	if l.answers >= l.until && len(l.events) > 0 && len(l.versions) > 0 && len(l.jobs) > 0 {
		select {
		case l.enough <- struct{}{}:
		default: // it was signalled
		}
	}
}

// Killed at any time under mixed load, the server has kept all that it acknowledged:
// every change, every event, which is also delivered, and every job, which ends once
// and tells of it.
func TestKilled(t *testing.T) {
	t.Parallel()
	kills := 6
	if race.Enabled { // it makes each start slower, and it is processes that race
		kills = 3
	}
	if os.Getenv("SUREHOOK_KILLS") != "" {
		_, err := fmt.Sscan(os.Getenv("SUREHOOK_KILLS"), &kills)
		require.NoError(t, err)
	}
	onEach(t, func(t *testing.T, p place) {
		e, told := newEndpoint(t), newEndpoint(t)
		l := &ledger{events: map[string]bool{}, versions: map[string]float64{}}
		flags := []string{"-schedule", "100ms"}
		s := start(t, p, flags...)
		id := s.subscribe(operatorToken, e.URL)
		s.stop()
		var mu sync.Mutex
		var base string // of the server that runs
		var wg sync.WaitGroup
		unload := func() {}
		killtest.Run(t, killtest.Case{
			Child:  func(int) *exec.Cmd { return command(p, flags...) },
			Rounds: kills,
			Heard: func(line string) {
				if url, ok := strings.CutPrefix(line, "listening on "); ok {
					mu.Lock()
					base = url
					mu.Unlock()
				}
			},
			Point: func(r *killtest.Running) {
				r.Lines(1)
				mu.Lock()
				at := base
				mu.Unlock()
				ctx, cancel := context.WithCancel(t.Context())
				unload = cancel
				enough := l.begin(1 + rand.IntN(100)) // not time: a busy machine answers less in it
				for w := range 4 {
					wg.Go(func() { l.load(ctx, at, w, told.URL) })
				}
				r.Await(enough)
			},
			Within: 20 * time.Millisecond,
			Check: func() {
				unload()
				wg.Wait()
			},
		})
		away(t, p, time.Minute)
		s = start(t, p, flags...)
		t.Logf("acknowledged: %d events, %d subscribers, %d jobs", len(l.events), len(l.versions), len(l.jobs))

		for _, job := range l.jobs {
			done := s.finished(operatorToken, job)
			require.Equal(t, "succeeded", done["status"], "%v", done)
			result := done["result"].(object)
			require.InDelta(t, 1, result["created"].(float64)+result["updated"].(float64)-1, 0, "%v", result)
		}
		for sub, version := range l.versions {
			now := s.get(operatorToken, "/subscribers/"+sub).is(http.StatusOK)
			require.GreaterOrEqual(t, now["version"], version)
		}
		// A delivery that was in flight at a kill is due again when its lease ends.
		seen := map[string]bool{}
		for deadline := time.Now().Add(120 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
			if len(s.get(operatorToken, "/deliveries?status=pending&limit=1&subscription_id="+id).data()) == 0 &&
				len(s.get(operatorToken, "/deliveries?status=awaiting_retry&limit=1").data()) == 0 &&
				len(s.get(operatorToken, "/deliveries?status=pending&limit=1").data()) == 0 {
				break
			}
		}
		versions := map[string]bool{}
		for _, one := range e.received() {
			seen[one.header.Get("Webhook-Id")] = true
			var body struct {
				Object  struct{ Type, ID string }
				Version int64
			}
			require.NoError(t, json.Unmarshal(one.body, &body))
			versions[fmt.Sprint(body.Object, body.Version)] = true
		}
		for event := range l.events {
			require.True(t, seen[event], "%s was acknowledged and not delivered", event)
		}
		for sub := range l.versions {
			now := s.get(operatorToken, "/subscribers/"+sub).is(http.StatusOK)["version"].(float64)
			for v := 1.0; v <= now; v++ { // a change without its event, or an event without its change
				require.True(t, versions[fmt.Sprintf("{subscriber %s} %.0f", sub, v)] || versions[fmt.Sprintf("{subscriber %s}%.0f", sub, v)], "%s has version %.0f and its event %.0f was not delivered", sub, now, v)
			}
		}
		completed := map[string]map[string]bool{}
		for _, one := range told.received() {
			var body struct{ Object struct{ ID string } }
			require.NoError(t, json.Unmarshal(one.body, &body))
			if completed[body.Object.ID] == nil {
				completed[body.Object.ID] = map[string]bool{}
			}
			completed[body.Object.ID][one.header.Get("Webhook-Id")] = true
		}
		for _, job := range l.jobs {
			require.Len(t, completed[job], 1, "one event tells of the end of %s", job)
		}
		require.False(t, strings.Contains(s.logged(), "level=ERROR"), "%s", s.logged())
	})
}

// away makes what is in the database of a server that does not run as old as if it had
// not run for so long: the leases of those that were killed have ended.
func away(t *testing.T, p place, d time.Duration) {
	t.Helper()
	by := fmt.Sprintf("interval '%d microseconds'", d.Microseconds())
	if p.driver == "sqlite" {
		by = fmt.Sprint(d.Microseconds())
	}
	db := p.open(t)
	for _, statement := range []string{
		"UPDATE surehook_leases SET until = until - " + by,
		"UPDATE surehook_heads SET leases_end = leases_end - " + by + " WHERE leased > 0",
		"UPDATE surehook_jobs SET due = due - " + by + " WHERE status = 'running'",
	} {
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
}
