package senderotel

import (
	"sync"
	"sync/atomic"
)

// rememberedMost bounds what is remembered: names of event types may come from anywhere.
const rememberedMost = 1000

// remembered keeps what is dear to make, by what it is made of: the first ones up to a
// bound. Others are made anew each time.
type remembered[K comparable, V any] struct {
	made sync.Map
	n    atomic.Int64
}

func (r *remembered[K, V]) of(k K, make func(K) V) V {
	if found, ok := r.made.Load(k); ok {
		return found.(V)
	}
	v := make(k)
	if r.n.Load() < rememberedMost {
		if _, there := r.made.LoadOrStore(k, v); !there {
			r.n.Add(1)
		}
	}
	return v
}
