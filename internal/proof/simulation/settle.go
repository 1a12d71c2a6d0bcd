package simulation

import (
	"strings"
	"time"

	"github.com/surehook/surehook/sender"
)

// mostDrains bounds how often everything may take a horizon to come to its end.
const mostDrains = 6

// settle ends the faults, and brings everything to its end: first by itself, and then
// by a redelivery of each dead letter, until all deliveries are delivered or cancelled.
func (w *world) settle() {
	w.calm = true
	w.away, w.down = time.Time{}, time.Time{}
	w.say("the faults stop")
	w.config.MaxIdle = time.Hour
	for _, p := range w.processes { // which wait longer while there is no work
		p.loop = nil
		p.life++
		p.start()
	}
	for _, s := range w.subs {
		s.trouble, s.skew = nil, 0
		w.fail(s.open())
	}
	for range mostDrains {
		for _, s := range w.subs {
			w.resume(s, sender.Resume{Force: true})
		}
		w.run(w.now.Add(w.config.Policy.Backoff.Horizon + 3*time.Hour))
		if w.broken != nil || w.failed != nil {
			return
		}
		if w.remains() == 0 {
			break
		}
	}
	w.ended()
}

// remains looks at all deliveries, redelivers dead letters, and returns how many have
// not ended.
func (w *world) remains() (n int) {
	w.hint()
	w.sendExpired()
	n = w.producer.begun + len(w.missing())
	for _, d := range w.deliveries {
		w.look(d)
		if d.status == sender.StatusDeadLettered {
			w.counts["end "+string(d.status)]++
			w.redeliver(d)
		}
		if d.live {
			n++
		}
	}
	return n
}

// ended checks the final state.
func (w *world) ended() {
	if left := w.producer.begun; left > 0 {
		w.violated("I1", "%d events could not be published", left)
	}
	if missing := w.missing(); len(missing) > 0 {
		w.violated("I1", "there are no deliveries of %s", strings.Join(missing, ", "))
	}
	for _, d := range w.deliveries {
		w.look(d)
		w.counts["end "+string(d.status)]++
		switch d.status {
		case sender.StatusDelivered:
			if d.sub.ends[d.event.id] == 0 {
				w.violated("I1", "%s is delivered, and its receiver knows nothing of it", d.name)
			}
		case sender.StatusCancelled:
		case sender.StatusSuperseded:
			if !d.sub.wasLatest {
				w.violated("I16", "%s is %s in the end, and its subscription has always wanted all versions", d.name, d.status)
			}
		default:
			w.violated("I1", "%s is %s in the end", d.name, d.status)
		}
		d.sub.compare(d.event)
		w.counts[ends[d.sub.ends[d.event.id]]]++
	}
	w.checkNewest()
	w.countLeftOut()
	w.checkRollups()
	w.say("the end")
}

var ends = [...]string{0: "not received", effected: "applied", stale: "stale", deadLettered: "set aside"}
