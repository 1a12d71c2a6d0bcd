package http1

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// leastPatient is the time after which the least patient of the common servers
	// closes an unused connection: gunicorn 2 s; Node, Apache and uvicorn 5 s;
	// nginx 75 s. The client assumes it of a server that says nothing and has not
	// been watched.
	leastPatient = 2 * time.Second

	// margin is how much earlier than its server the client gives a connection up. A request
	// needs half a round trip, and servers look at their timers only now and then.
	margin = time.Second

	// watchAgain is the time after which a server is watched anew: its settings may
	// have changed.
	watchAgain = 10 * time.Minute
)

// habit is the client's knowledge of how long an origin's server keeps an unused
// connection. The client's mutex guards it.
type habit struct {
	closes  time.Duration // the time after which it closed one; 0: not known
	seen    time.Time     // when it was observed
	broken  bool          // it has closed a connection earlier than expected
	watched bool          // one of its connections is being watched
}

// keeps is how long a connection may wait for its next request, at most most. promised
// is the time that the server's last answer gave, or noPromise.
func (h *habit) keeps(promised, most time.Duration) time.Duration {
	d := leastPatient
	switch {
	case promised != noPromise && h.closes > 0:
		d = min(promised, h.closes)
	case h.closes > 0:
		d = h.closes
	case promised != noPromise && !h.broken:
		d = promised
	}
	return min(less(d), most)
}

// less is a server's time less the margin, and at least half of it.
func less(d time.Duration) time.Duration { return max(d-margin, d/2) }

// toWatch reports whether there is something to learn from a connection.
func (h *habit) toWatch(promised time.Duration, now time.Time) bool {
	if h.watched || promised != noPromise && !h.broken && h.closes == 0 {
		return false
	}
	return h.closes == 0 || now.Sub(h.seen) >= watchAgain
}

// surprise notes that a connection was closed that the server should have kept.
func (h *habit) surprise() { h.closes, h.broken = 0, true }

// learn notes that the server was seen to close a connection after d.
func (h *habit) learn(d time.Duration, now time.Time) {
	h.closes, h.seen, h.broken = max(d, time.Millisecond), now, false
}

// noPromise: the answer has no Keep-Alive header with a time.
const noPromise time.Duration = -1

// promise is how long a server says that it keeps a connection: the parameter timeout
// of the Keep-Alive header, in seconds (RFC 2068, section 19.7.1.1). If there are
// several, the shortest counts.
func promise(header http.Header) time.Duration {
	least := noPromise
	for _, line := range header["Keep-Alive"] {
		for param := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
			if !strings.EqualFold(strings.TrimSpace(name), "timeout") {
				continue
			}
			seconds, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(value), `"`), 10, 31)
			if err != nil {
				continue
			}
			if d := time.Duration(seconds) * time.Second; least == noPromise || d < least {
				least = d
			}
		}
	}
	return least
}
