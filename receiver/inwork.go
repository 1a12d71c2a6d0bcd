package receiver

import "sync"

type eventKey struct{ scope, id string }

// inWork holds the events that this process is applying right now. A second request for
// one of them could only wait for the first one's transaction, and would hold a connection
// of the pool for as long. A sender that gives up early and resends would soon have taken
// all of them. Other processes are kept apart by the marker's row.
type inWork struct {
	mu     sync.Mutex
	events map[eventKey]struct{}
}

func (w *inWork) enter(k eventKey) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, busy := w.events[k]; busy {
		return false
	}
	if w.events == nil {
		w.events = make(map[eventKey]struct{})
	}
	w.events[k] = struct{}{}
	return true
}

func (w *inWork) leave(k eventKey) {
	w.mu.Lock()
	delete(w.events, k)
	w.mu.Unlock()
}
