package receiver

import (
	"container/list"
	"sync"
	"time"

	"github.com/surehook/surehook/signing"
)

type keyholder struct {
	verifier *signing.Verifier
	scope    string
	at       time.Time // when it was looked up
}

// keyholders remembers the keyholders of names, and the names that have none. Each has a
// limit of its own: a flood of unknown names must not push out the known ones.
type keyholders struct {
	mu      sync.Mutex
	known   recent[*keyholder]
	unknown recent[struct{}]
	// forgotten counts calls of forget: the result of a lookup that began before one is
	// not kept.
	forgotten int
}

func newKeyholders(size int, ttl, negativeTTL time.Duration) *keyholders {
	return &keyholders{known: newRecent[*keyholder](size, ttl), unknown: newRecent[struct{}](size, negativeTTL)}
}

// get returns a nil holder for a name that is known to be nobody's.
func (k *keyholders) get(name string, now time.Time) (holder *keyholder, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if holder, known = k.known.get(name, now); known {
		return holder, true
	}
	_, known = k.unknown.get(name, now)
	return nil, known
}

func (k *keyholders) put(name string, holder *keyholder, now time.Time, since int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if since != k.forgotten {
		return
	}
	if holder == nil {
		k.known.remove(name)
		k.unknown.put(name, struct{}{}, now)
		return
	}
	k.unknown.remove(name)
	k.known.put(name, holder, now)
}

func (k *keyholders) changes() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.forgotten
}

func (k *keyholders) forget(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forgotten++
	k.known.remove(name)
	k.unknown.remove(name)
}

// recent is a map that keeps the values that were used last, each for a time.
type recent[V any] struct {
	size  int
	ttl   time.Duration
	byKey map[string]*list.Element
	order *list.List // of remembered[V], used last in front
}

type remembered[V any] struct {
	key   string
	value V
	at    time.Time
}

func newRecent[V any](size int, ttl time.Duration) recent[V] {
	return recent[V]{size: size, ttl: ttl, byKey: map[string]*list.Element{}, order: list.New()}
}

func (r recent[V]) get(key string, now time.Time) (value V, ok bool) {
	e, ok := r.byKey[key]
	if !ok {
		return value, false
	}
	m := e.Value.(remembered[V])
	if now.Sub(m.at) >= r.ttl {
		r.remove(key)
		return value, false
	}
	r.order.MoveToFront(e)
	return m.value, true
}

func (r recent[V]) put(key string, value V, now time.Time) {
	r.remove(key)
	for len(r.byKey) >= r.size {
		r.remove(r.order.Back().Value.(remembered[V]).key)
	}
	r.byKey[key] = r.order.PushFront(remembered[V]{key, value, now})
}

func (r recent[V]) remove(key string) {
	if e, ok := r.byKey[key]; ok {
		r.order.Remove(e)
		delete(r.byKey, key)
	}
}
