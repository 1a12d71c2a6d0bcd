package postgres

import (
	"sync"

	"github.com/jackc/pgx/v5/pgtype"
)

// places remembers where the rows of heads and turns were put last by this process.
// They change with every step, and a look-up by key passes over all their dead
// versions that could not be vacuumed yet. They are hints: a row is taken only if it
// is the one that was meant, and is looked up by its key otherwise.
type places struct {
	mu    sync.Mutex
	heads map[int64]pgtype.TID
	turns map[turnKey]pgtype.TID
}

// placesLimit bounds what is remembered of each. It is forgotten when it is reached.
const placesLimit = 100_000

func placesOf[K comparable](p *places, from *map[K]pgtype.TID, keys []K) []pgtype.TID {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]pgtype.TID, len(keys))
	for i, k := range keys {
		if at, ok := (*from)[k]; ok {
			all[i] = at
		} else {
			all[i] = pgtype.TID{Valid: true} // there is none at (0,0)
		}
	}
	return all
}

func remember[K comparable](p *places, in *map[K]pgtype.TID, keys []K, at []pgtype.TID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if *in == nil || len(*in) >= placesLimit {
		*in = map[K]pgtype.TID{}
	}
	for i, k := range keys {
		(*in)[k] = at[i]
	}
}
