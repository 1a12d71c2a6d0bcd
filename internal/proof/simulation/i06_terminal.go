package simulation

import "github.com/surehook/surehook/sender"

// I6: a terminal state is left only by an explicit redelivery.

func (w *world) checkTerminal(d *delivery, status sender.Status) {
	switch {
	case !terminal(d.status) || status == d.status:
	case d.status == sender.StatusCancelled && status == sender.StatusDelivered && d.succeeded: // it was in flight
	case !d.redeliver && !d.replayable:
		w.violated("I6", "%s was %s, and is %s, and nobody has redelivered it", d.name, d.status, status)
	}
	if terminal(status) && !terminal(d.status) {
		d.redeliver, d.replayable = false, false // it has left the sets of replays, too
	}
}
