package dispatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An attempt begins only if it can end and be recorded under its lease, and only if nobody
// can have taken the lease over.
func TestInTime(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p, _ := testPump(&now)
	cfg := &p.d.cfg
	latest := now.Add(cfg.Lease - cfg.Timeout - cfg.Lease/6)
	inTime := func(beaten, at time.Time) bool {
		p.present.beaten = beaten
		return p.inTime(&attempt{asked: now}, at)
	}
	require.True(t, inTime(latest, latest))
	require.False(t, inTime(latest, latest.Add(1)), "it could end too late")
	require.True(t, inTime(now, now.Add(beatStale)))
	require.False(t, inTime(now, now.Add(beatStale+1)), "the process may seem gone")
	require.False(t, p.inTime(&attempt{asked: now.Add(-1)}, now), "it was claimed before the process seemed gone")

	x, later, late := p.present, now.Add(beatStale), now.Add(2*beatStale+1)
	x.beaten = now
	x.keep(2, later)
	require.True(t, x.vouches(now, later))
	x.keep(3, late)
	require.False(t, x.vouches(now, late), "there was no beat for too long")
	require.True(t, x.vouches(late, late))
	x.keep(2, later)
	require.True(t, x.vouches(late, late.Add(beatStale)), "the answer of an earlier beat came last")
	require.Equal(t, int64(3), x.stored)
	x.stored = 0
	x.keep(4, late.Add(1))
	require.False(t, x.vouches(late, late.Add(1)), "it was taken over meanwhile")
	next := late.Add(2)
	x.said(Presence{Process: x.process, Beat: 5}, next, []Presence{{Process: x.process, Beat: 4}})
	require.True(t, x.vouches(late.Add(1), next))
	x.said(Presence{Process: x.process, Beat: 6}, next.Add(1), []Presence{{Process: x.process + 1, Beat: 1}})
	require.False(t, x.vouches(next, next.Add(1)), "others did not know it any more")
}

// A process judges by its own looks, one after the other, which others are gone.
func TestWatch(t *testing.T) {
	const s = time.Second
	type look struct {
		at    time.Duration
		beat  int64 // of process 7; 0: it is not known
		gone  bool
		takes time.Duration // the answer
	}
	for name, looks := range map[string][]look{
		"it says that it lives":      {{0, 1, false, 0}, {s, 2, false, 0}, {2 * s, 3, false, 0}, {3 * s, 4, false, 0}, {4 * s, 5, false, 0}, {5 * s, 6, false, 0}, {6 * s, 7, false, 0}},
		"it is gone":                 {{0, 1, false, 0}, {s, 1, false, 0}, {2 * s, 1, false, 0}, {3 * s, 1, false, 0}, {4 * s, 1, false, 0}, {5 * s, 1, true, 0}, {6 * s, 1, true, 0}},
		"it comes back":              {{0, 1, false, 0}, {s, 1, false, 0}, {2 * s, 1, false, 0}, {3 * s, 1, false, 0}, {4 * s, 1, false, 0}, {5 * s, 2, false, 0}, {6 * s, 2, false, 0}},
		"it has left, and comes":     {{0, 1, false, 0}, {s, 1, false, 0}, {2 * s, 1, false, 0}, {3 * s, 0, false, 0}, {4 * s, 1, false, 0}, {5 * s, 1, false, 0}, {6 * s, 1, false, 0}},
		"too few looks":              {{0, 1, false, 0}, {2 * s, 1, false, 0}, {4 * s, 1, false, 0}, {6 * s, 1, false, 0}, {8 * s, 1, true, 0}},
		"who looks has stood still":  {{0, 1, false, 0}, {s, 1, false, 0}, {2 * s, 1, false, 0}, {3 * s, 1, false, 0}, {10 * s, 1, false, 0}, {11 * s, 1, false, 0}, {14500 * time.Millisecond, 1, false, 0}},
		"the database stood still":   {{0, 1, false, 0}, {s, 1, false, 0}, {2 * s, 1, false, 0}, {3 * s, 1, false, 4 * s}, {8 * s, 1, false, 0}, {9 * s, 1, false, 0}},
		"an answer that is too slow": {{0, 1, false, s}, {2 * s, 1, false, s}, {4 * s, 1, false, s}, {6 * s, 1, false, s}, {8 * s, 1, true, s}},
	} {
		t.Run(name, func(t *testing.T) {
			var w watch
			begin := time.Now()
			for _, l := range looks {
				known := []Presence{{Process: 1, Beat: 1}} // the looking process itself is never gone
				if l.beat != 0 {
					known = append(known, Presence{Process: 7, Beat: l.beat})
				}
				var want []Presence
				if l.gone {
					want = known[1:]
				}
				require.Equal(t, want, w.look(1, known, begin.Add(l.at), begin.Add(l.at+l.takes)), "at %v", l.at)
			}
		})
	}
}
