package dispatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

// A claim is bounded as a whole. However many places the lanes have, none takes all of it.
func TestLimitClaim(t *testing.T) {
	for _, c := range []struct {
		most     int
		of, want [sender.Lanes]int
	}{
		{0, [sender.Lanes]int{10, 100, 20}, [sender.Lanes]int{}},
		{16, [sender.Lanes]int{10, 100, 20}, [sender.Lanes]int{4, 8, 4}},
		{60, [sender.Lanes]int{10, 100, 20}, [sender.Lanes]int{10, 35, 15}},
		{500, [sender.Lanes]int{10, 100, 20}, [sender.Lanes]int{10, 100, 20}},
		{256, [sender.Lanes]int{1000, 100_000, 1000}, [sender.Lanes]int{64, 128, 64}},
		{256, [sender.Lanes]int{1000, 0, 1000}, [sender.Lanes]int{64, 0, 64}},
	} {
		var p ClaimParams
		all := 0
		for l := range p.Lanes {
			p.Lanes[l].Slots = c.of[l]
			all += c.want[l]
		}
		require.Equal(t, all, limitClaim(&p, c.most))
		for l := range p.Lanes {
			require.Equal(t, c.want[l], p.Lanes[l].Slots, "lane %d of %d", l, c.most)
		}
	}
}

// testPump is a pump at a time, which notes the attempts that it begins.
func testPump(now *time.Time) (p *pump, begun *[]*attempt) {
	p, begun = newPump(&Dispatcher{now: func() time.Time { return *now }, cfg: Config{Slots: 8}.withDefaults()}), new([]*attempt)
	p.launch = func(a *attempt) { *begun = append(*begun, a) }
	p.present.keep(1, *now)
	return p, begun
}

// A scan takes places from the attempts that take longer than a fast answer, gives back what
// waits behind them, and lets others begin. It counts the ages, too.
func TestScan(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := start
	p, begun := testPump(&now)
	claim := func(subscription int64, n int) {
		var all []Claimed
		for range n {
			all = append(all, claimed(subscription, subscription, sender.LaneProven).Claimed)
		}
		p.accept(all, now, now)
	}
	claim(1, 5)
	claim(2, 3)
	claim(3, 1)
	require.Len(t, *begun, 3+3)
	now = start.Add(p.d.cfg.Policy.FastAnswer)
	require.False(t, p.scan(now), "none takes longer")
	now = now.Add(slowScanEvery - 1)
	require.False(t, p.scan(now), "it looks now and then")
	now = now.Add(1)
	require.True(t, p.scan(now))
	require.Len(t, *begun, 3+3+1)
	require.Len(t, p.back, 1, "of two that waited, one has a place later")
	require.Len(t, p.results, 1, "it is given back soon")

	<-p.results
	claim(3, 4)
	require.Len(t, *begun, 3+3+3)
	p.slots.demote(p.slots.subs[3])
	now = now.Add(slowScanEvery)
	require.False(t, p.scan(now))
	require.Len(t, p.back, 1+1, "what waits behind failures is given back, too")
	require.Len(t, p.results, 1)

	for _, at := range []struct {
		since time.Duration
		age   int64
	}{{trimEvery - 1, 1}, {trimEvery, 2}, {2*trimEvery - 1, 2}, {2 * trimEvery, 3}} {
		p.scan(start.Add(at.since))
		require.Equal(t, at.age, p.slots.age, at.since)
	}
}
