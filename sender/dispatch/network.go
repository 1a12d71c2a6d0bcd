package dispatch

import "time"

const (
	// Our own network is taken to be down when this many hosts of this many subscribers
	// failed at connecting within networkWindow, and nobody answered meanwhile.
	networkHosts       = 5
	networkSubscribers = 3
	networkWindow      = time.Minute

	// networkForget ends the belief that the network is down, once nothing has failed at
	// connecting for this long: dispatchers can rest for hours.
	networkForget = 15 * time.Minute
)

// networkWatch tells from the outcomes of attempts whether our own network is down. It is
// plain bookkeeping, without a clock and without locks. It remembers only the last few
// hosts and subscribers.
type networkWatch struct {
	hosts, subscribers recent
	first              time.Time // first failure at connecting since an answer, or since a while without one; zero: none
	last               time.Time // last failure at connecting; zero: none
	answered           time.Time // the last failure at connecting before an answer
	isDown             bool
}

// observe takes in how an attempt ended: it failed at connecting, or somebody
// answered, or neither.
func (w *networkWatch) observe(host, subscriber string, failed, answered bool, now time.Time) {
	switch {
	case answered:
		*w = networkWatch{hosts: w.hosts[:0], subscribers: w.subscribers[:0], last: w.last, answered: w.last}
	case failed:
		w.expire(now)
		if w.first.IsZero() || !w.isDown && now.Sub(w.last) > networkWindow {
			w.first = now
		}
		w.last = now
		w.hosts = w.hosts.add(host, networkHosts, now)
		w.subscribers = w.subscribers.add(subscriber, networkSubscribers, now)
		// An endpoint that fails all the time while others answer is no evidence, however
		// often it fails between two answers.
		alone := w.answered.IsZero() || now.Sub(w.answered) > networkWindow
		w.isDown = w.isDown || alone && w.hosts.within(networkHosts, now) && w.subscribers.within(networkSubscribers, now)
	}
}

// down reports whether the network is down. Once it is, one answer ends it.
func (w *networkWatch) down(now time.Time) bool {
	w.expire(now)
	return w.isDown
}

// since is the time of the first failure in the outage.
func (w *networkWatch) since() time.Time { return w.first }

func (w *networkWatch) expire(now time.Time) {
	if w.isDown && now.Sub(w.last) > networkForget {
		*w = networkWatch{}
	}
}

// recent lists different names, with the one seen last in front.
type recent []seen

type seen struct {
	name string
	at   time.Time
}

// add notes that a name was seen, and keeps the latest names, but no more of them than
// most.
func (r recent) add(name string, most int, now time.Time) recent {
	for i := range r {
		if r[i].name == name {
			r = append(r[:i], r[i+1:]...)
			break
		}
	}
	if len(r) == most {
		r = r[:most-1]
	}
	r = append(r, seen{})
	copy(r[1:], r)
	r[0] = seen{name, now}
	return r
}

// within reports whether n names were seen within the window.
func (r recent) within(n int, now time.Time) bool {
	return len(r) >= n && now.Sub(r[n-1].at) <= networkWindow
}
