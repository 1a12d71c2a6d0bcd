//go:build linux

package post

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

// unlucky is the chance of a row to fail although ours is not worse than net/http's. There
// are about ten such rows, so that all of them together fail by chance less than once in
// a million runs.
const unlucky = 1e-7

// race is a server that answers every request that it gets, and whose answers do not all
// arrive: it closes connections, or sends what nobody asked for, at a time when the next
// request may be on its way.
type race struct {
	name   string
	url    string
	record record
	// callers post beside each other, each with connections of its own, and each so often.
	callers, posts int
	// pause is what a caller waits for before its n-th post.
	pause func(n int) time.Duration
	// second: ours posts over HTTP/2 too, though the server offers HTTP/1.1.
	second bool
	// reload is called every reloadEvery meanwhile, unless it is nil. It closes connections.
	// Then no attempt of ours may count as a failure, except that servers reset some HTTP/2
	// connections that were just made. They do not say whether they have processed a request.
	reload func()
}

// reloadEvery is long enough for a server to start anew in.
const reloadEvery = 150 * time.Millisecond

func (m *matrix) races(rows ...race) {
	for _, r := range rows {
		m.Run(r.name, func(t *testing.T) {
			if r.reload == nil { // a server that two rows reload has no time to start in
				t.Parallel()
			}
			to, err := url.Parse(r.url)
			require.NoError(t, err)
			tally := tally{resets: r.second, results: map[string]Answer{}}
			var callers sync.WaitGroup
			stop := every(reloadEvery, r.reload)
			for k := range r.callers {
				ours, peer := newCallers(t, m.authority, way{})
				if r.second {
					ours.poster.transports.origins.remember(to.Host, true)
				}
				callers.Go(func() {
					for n := range r.posts {
						time.Sleep(r.pause(n)) // the row's input
						both := []*caller{ours, peer}
						if n%2 == 1 { // the one that posts first after the pause meets more of what came in it
							slices.Reverse(both)
						}
						for _, c := range both {
							id := eventID(t, c, k*r.posts+n)
							tally.add(c == ours, id, c.attempt(t.Context(), id, to, 0))
						}
					}
				})
			}
			callers.Wait()
			stop()
			tally.check(t, r.callers*r.posts, r.record)
			if r.reload == nil {
				tally.compare(t, r.callers*r.posts)
			} else {
				require.Empty(t, tally.charged)
			}
			m.Cleanup(func() { r.record.once(m.T, tally.results) })
		})
	}
}

// every calls a function that is not nil, again and again, until stop is called.
func every(pause time.Duration, call func()) (stop func()) {
	if call == nil {
		return func() {}
	}
	done := make(chan struct{})
	var calling sync.WaitGroup
	calling.Go(func() {
		for {
			select {
			case <-time.After(pause): // the row's input
				call()
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		calling.Wait()
	}
}

// tally counts what failed.
type tally struct {
	resets     bool // what is reset is not charged
	mu         sync.Mutex
	results    map[string]Answer
	ours, peer int
	how        map[string]int
	charged    []string // failures of ours that count: see Answer.ClosedIdle
}

func (y *tally) add(isOurs bool, id string, r Answer) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.results[id] = r
	if r.Class == sender.ClassNone {
		return
	}
	who := "net/http"
	if isOurs {
		who = "ours"
		y.ours++
		if !r.ClosedIdle && !(y.resets && r.Class == sender.ClassReset) {
			y.charged = append(y.charged, fmt.Sprintf("%s: %d %s %s", id, r.StatusCode, r.Class, r.Error))
		}
	} else {
		y.peer++
	}
	if y.how == nil {
		y.how = map[string]int{}
	}
	y.how[fmt.Sprintf("%s: %d %s", who, r.StatusCode, r.Class)]++
}

func (y *tally) check(t *testing.T, posts int, r record) {
	t.Helper()
	chance := chanceOfWorse(posts, y.ours, y.peer)
	t.Logf("of %d posts each, %d of ours failed and %d of net/http's (p = %.2g): %v", posts, y.ours, y.peer, chance, y.how)
	r.check(t, y.results, false)
}

// compare fails if ours has failed more often than net/http's. posts is how many each has made.
func (y *tally) compare(t *testing.T, posts int) {
	t.Helper()
	chance := chanceOfWorse(posts, y.ours, y.peer)
	require.Greater(t, chance, unlucky, "ours fails more often: %d of %d, net/http's %d: %v", y.ours, posts, y.peer, y.how)
}

// chanceOfWorse is how likely it is that ours or more of the failures are ours, if both
// sides fail equally often: Fisher's exact test, one-sided, with n posts each.
func chanceOfWorse(n, ours, peer int) float64 {
	choose := func(n, k int) float64 { // its logarithm
		if k < 0 || k > n {
			return math.Inf(-1)
		}
		a, _ := math.Lgamma(float64(n + 1))
		b, _ := math.Lgamma(float64(k + 1))
		c, _ := math.Lgamma(float64(n - k + 1))
		return a - b - c
	}
	sum := 0.0
	for k := ours; k <= min(n, ours+peer); k++ {
		sum += math.Exp(choose(n, k) + choose(n, ours+peer-k) - choose(2*n, ours+peer))
	}
	return sum
}

func TestChanceOfWorse(t *testing.T) {
	for _, c := range []struct {
		n, ours, peer int
		want          float64
	}{
		{200, 0, 0, 1},
		{1, 1, 0, 0.5},
		{4, 3, 1, 17.0 / 70}, // the lady who tastes tea: R. A. Fisher, The Design of Experiments, 1935
		{4, 4, 0, 1.0 / 70},
	} {
		require.InDelta(t, c.want, chanceOfWorse(c.n, c.ours, c.peer), 1e-9, c)
	}
	require.Less(t, chanceOfWorse(200, 100, 5), unlucky, "every second one is found out")
	require.Greater(t, chanceOfWorse(200, 12, 5), unlucky)
}
