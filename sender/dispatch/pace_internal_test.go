package dispatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
			p.pace.caughtUp = c.caughtUp
			require.Equal(t, now.Add(c.wait), p.recordAt(now, now.Add(c.wait)))
			p.done, p.firstDone = []*attempt{{}}, now.Add(3*time.Millisecond)
			if c.change != nil {
				c.change(p)
			}
			require.Equal(t, c.want, p.mayRest())
		})
	}
}
