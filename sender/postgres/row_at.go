package postgres

import (
	"sync"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/surehook/surehook/sender/internal/lru"
)

// rowAt remembers where this process last put the rows of heads and turns. They change with
// every step, and a look-up by key passes over all their dead versions that could not be
// vacuumed yet. These are hints: a row is taken only if it is the right one, and otherwise
// it is looked up by its key.
type rowAt struct {
	mu    sync.Mutex
	heads *lru.Map[int64, pgtype.TID]
	turns *lru.Map[turnKey, pgtype.TID]
}

// rowAtLimit bounds how many of each are remembered: those that were used last.
const rowAtLimit = 100_000

func newRowAt() rowAt {
	return rowAt{heads: lru.New[int64, pgtype.TID](rowAtLimit), turns: lru.New[turnKey, pgtype.TID](rowAtLimit)}
}

func rowsAt[K comparable](p *rowAt, from *lru.Map[K, pgtype.TID], keys []K) []pgtype.TID {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]pgtype.TID, len(keys))
	for i, k := range keys {
		if at, ok := from.Get(k); ok {
			all[i] = at
		} else {
			all[i] = pgtype.TID{Valid: true} // no row is at (0,0)
		}
	}
	return all
}

func remember[K comparable](p *rowAt, in *lru.Map[K, pgtype.TID], keys []K, at []pgtype.TID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, k := range keys {
		in.Put(k, at[i])
	}
}
