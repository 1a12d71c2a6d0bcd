package dispatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

// Results wait for a step that is made anyway, but not for long. If something waits for them,
// they are recorded with those that come soon.
func TestDueToRecord(t *testing.T) {
	first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := first.Add(time.Millisecond)
	wire := func(l sender.Lane) func(p *pump) {
		return func(p *pump) { p.slots.wire, p.slots.lane[l].wire = 1, 1 }
	}
	proven := func(l sender.Lane) func(p *pump) {
		return func(p *pump) { wire(l)(p); p.provenDone = true }
	}
	for name, c := range map[string]struct {
		caughtUp, keptBack, toTheEnd bool
		change                       func(p *pump)
		want                         time.Time
	}{
		"caught up":                         {caughtUp: true, change: wire(sender.LaneProven), want: first.Add(recordWithin)},
		"and nothing is on the wire":        {caughtUp: true, want: first.Add(recordWithin)},
		"looks are seldom":                  {caughtUp: true, change: func(p *pump) { p.d.cfg.MaxDelay = time.Second }, want: first.Add(5 * time.Second / 4)},
		"a short lease":                     {caughtUp: true, change: func(p *pump) { p.d.cfg.Lease = 1200 * time.Millisecond }, want: first.Add(100 * time.Millisecond)},
		"almost as many as a step needs":    {caughtUp: true, change: func(p *pump) { p.done = make([]*attempt, flushResults-1) }, want: first.Add(recordWithin)},
		"as many":                           {caughtUp: true, change: func(p *pump) { p.done = make([]*attempt, flushResults); wire(sender.LaneProven)(p) }, want: now},
		"others wait for them":              {caughtUp: true, keptBack: true, change: wire(sender.LaneProven), want: first.Add(flushAfter)},
		"and nothing more comes":            {caughtUp: true, keptBack: true, want: now},
		"more is due":                       {change: wire(sender.LaneProven), want: first.Add(flushAfter)},
		"more is due, and nothing comes":    {want: now},
		"proven ones come":                  {change: proven(sender.LaneProven), want: first.Add(flushAfter)},
		"others may come, but need not":     {change: proven(sender.LaneProbation), want: now},
		"those may come that alone are out": {change: wire(sender.LaneProbation), want: first.Add(flushAfter)},
		"to the end":                        {caughtUp: true, toTheEnd: true, change: wire(sender.LaneProven), want: first.Add(flushAfter)},
		"at the end":                        {caughtUp: true, toTheEnd: true, want: now},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pump{d: &Dispatcher{cfg: Config{}.withDefaults()}, slots: newSlots(slotsConfig{}), toTheEnd: c.toTheEnd, keptBack: c.keptBack, done: []*attempt{{}}, firstDone: first}
			p.pace.caughtUp = c.caughtUp
			if c.change != nil {
				c.change(p)
			}
			require.Equal(t, c.want, p.dueToRecord(now))
		})
	}
}

// A step is a mere look if nothing is known for it to do. When something is due, the database's
// clock says.
func TestLooks(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	there := now.Add(-time.Hour)
	for name, c := range map[string]struct {
		last   stepped
		hinted bool
		after  time.Duration // the last step
		want   bool
	}{
		"nothing is due":    {last: stepped{caughtUp: true, now: there}, after: time.Second, want: true},
		"asked for":         {last: stepped{caughtUp: true, now: there}, hinted: true, after: time.Second},
		"more was due":      {last: stepped{now: there}, after: time.Second},
		"something is due":  {last: stepped{caughtUp: true, now: there, due: there.Add(time.Second)}, after: time.Second},
		"it is not yet due": {last: stepped{caughtUp: true, now: there, due: there.Add(time.Second)}, after: time.Second - 1, want: true},
	} {
		p := pacing{hinted: c.hinted}
		p.look(&c.last, now)
		require.Equal(t, c.want, p.looks(now.Add(c.after)), name)
	}
}

// While something that is due cannot be claimed, the next look comes soon, and then ever later.
// It does not come before something can be found, nor sooner after a step than MaxDelay.
func TestAfter(t *testing.T) {
	ms := time.Millisecond
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p, _ := testPump(&now)
	p.pace.lastHint = now
	for n, c := range []struct {
		s    stepped
		want time.Duration
	}{
		{stepped{caughtUp: true, recorded: 1}, 200 * ms},
		{stepped{claimed: 1}, 2 * ms},
		{stepped{}, 4 * ms},
		{stepped{}, 8 * ms},
		{stepped{recorded: 1}, 2 * ms},
		{stepped{}, 4 * ms},
		{stepped{caughtUp: true}, 12 * ms},
		{stepped{caughtUp: true}, 24 * ms},
		{stepped{caughtUp: true, hinted: true}, 200 * ms},
		{stepped{}, 200 * ms},
		{stepped{claimed: 1}, 2 * ms},
		{stepped{caughtUp: true, claimed: 1}, 200 * ms},
		{stepped{caughtUp: true}, 200 * ms},
	} {
		require.Equal(t, c.want, p.after(&c.s), "step %d", n)
	}
	for _, c := range []struct {
		ago, due, want time.Duration
	}{
		{time.Second, ms, ms}, {10 * ms, ms, 2 * ms}, {0, ms, 12 * ms}, {0, 50 * ms, 50 * ms}, {0, time.Second, 200 * ms}, {0, -time.Second, 200 * ms},
	} {
		p.lastStep = now.Add(-c.ago)
		require.Equal(t, c.want, p.after(&stepped{caughtUp: true, now: now, due: now.Add(c.due)}), c.due)
	}
}

// A mere look records nothing that can wait for a later step. Other steps record as much as
// they may claim.
func TestTakeDone(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		change func(p *pump)
		done   int
		taken  int
		more   bool
	}{
		"a look":                    {done: 1},
		"a look, with more to come": {change: func(p *pump) { p.pace.dueAt = now.Add(1) }, done: 1},
		"something is due":          {change: func(p *pump) { p.pace.dueAt, p.keptBack = now, true }, done: 1, taken: 1},
		"asked for":                 {change: func(p *pump) { p.pace.hinted = true }, done: 1, taken: 1},
		"more was due":              {change: func(p *pump) { p.pace.caughtUp = false }, done: 1, taken: 1},
		"for a replay":              {change: func(p *pump) { p.admitted = true }, done: 1, taken: 1},
		"the next look is too late": {change: func(p *pump) { p.firstDone = now.Add(p.d.cfg.MaxDelay - recordWithin) }, done: 1, taken: 1},
		"as many as a claim":        {change: func(p *pump) { p.claimSize, p.keptBack = 100, true }, done: 100 + flushResults, taken: 100, more: true},
		"few are left":              {change: func(p *pump) { p.claimSize, p.provenDone = 100, false }, done: 99 + flushResults, taken: 100},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pump{d: &Dispatcher{cfg: Config{}.withDefaults()}, slots: newSlots(slotsConfig{}), claimSize: stepSize, done: make([]*attempt, c.done), firstDone: now, provenDone: true}
			p.pace.caughtUp = true
			if c.change != nil {
				c.change(p)
			}
			proven, keptBack := p.provenDone, p.keptBack
			done, more := p.takeDone(now)
			require.Len(t, done, c.taken)
			require.Equal(t, c.more, more)
			require.Len(t, p.done, c.done-c.taken)
			require.Equal(t, proven && c.done > c.taken, p.provenDone, "of those that are left")
			require.Equal(t, keptBack && c.done > c.taken, p.keptBack, "of those that are left")
		})
	}
}

// Nothing waits for a step if there is something to claim for a replay, or to give back.
func TestRecordAt(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	until := now.Add(time.Second)
	for name, c := range map[string]struct {
		change func(p *pump)
		want   time.Time
	}{
		"nothing":          {func(*pump) {}, until},
		"a result":         {func(p *pump) { p.done, p.firstDone = []*attempt{{}}, now }, now.Add(recordWithin)},
		"a late result":    {func(p *pump) { p.done, p.firstDone = []*attempt{{}}, until }, until},
		"for a replay":     {func(p *pump) { p.admitted = true }, now},
		"to be given back": {func(p *pump) { p.back = []givenBack{{}} }, now},
	} {
		p := &pump{d: &Dispatcher{cfg: Config{}.withDefaults()}, slots: newSlots(slotsConfig{})}
		p.pace.caughtUp = true
		c.change(p)
		require.Equal(t, c.want, p.recordAt(now, until), name)
	}
}

// A result wakes the pump only if it brings the next step forward.
func TestMayRest(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		caughtUp, toTheEnd bool
		wait               time.Duration // that the pump would rest
		change             func(p *pump)
		want               bool
	}{
		"caught up":                    {caughtUp: true, wait: 200 * time.Millisecond, want: true},
		"a longer rest":                {caughtUp: true, wait: 300 * time.Millisecond},
		"more is due":                  {wait: 200 * time.Millisecond},
		"to the end":                   {caughtUp: true, toTheEnd: true, wait: 200 * time.Millisecond},
		"other deliveries wait for it": {caughtUp: true, wait: 200 * time.Millisecond, change: func(p *pump) { p.keptBack = true }},
		"the run ends":                 {caughtUp: true, wait: 200 * time.Millisecond, change: func(p *pump) { p.draining = true }},
		"as many as a step records":    {caughtUp: true, wait: 200 * time.Millisecond, change: func(p *pump) { p.done = make([]*attempt, flushResults) }},
		"a short lease":                {caughtUp: true, wait: 200 * time.Millisecond, change: func(p *pump) { p.d.cfg.Lease = time.Second }},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pump{d: &Dispatcher{cfg: Config{}.withDefaults()}, slots: newSlots(slotsConfig{}), toTheEnd: c.toTheEnd}
			p.pace.caughtUp, p.restful = c.caughtUp, now.Add(time.Millisecond) // of an earlier rest
			require.Equal(t, now.Add(c.wait), p.recordAt(now, now.Add(c.wait)))
			p.done, p.firstDone = []*attempt{{}}, now.Add(3*time.Millisecond)
			if c.change != nil {
				c.change(p)
			}
			require.Equal(t, c.want, p.mayRest())
		})
	}
}
