package simulation

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup"
	dedupmemory "github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/internal/race"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/signing"
)

// received is a database in memory with receivers of its own.
type received struct {
	Database[*memory.Tx]
	by func() receiving
}

func (r received) receiving() receiving { return r.by() }

// forgetful finds no marker in a receiver's transaction that it has set an hour ago.
type forgetful struct {
	dedupStore[*dedupmemory.Tx]
	set map[string]time.Time
}

func (f forgetful) Mark(ctx context.Context, tx *dedupmemory.Tx, scope, id string, at time.Time) (bool, error) {
	fresh, err := f.dedupStore.Mark(ctx, tx, scope, id, at)
	if fresh {
		f.set[id] = at
	}
	return fresh || at.Sub(f.set[id]) > time.Hour, err
}

// careless takes each version for a newer one.
type careless struct{ dedupStore[*dedupmemory.Tx] }

func (c careless) Advance(ctx context.Context, tx *dedupmemory.Tx, scope string, o dedup.Object, version int64) (bool, error) {
	_, err := c.dedupStore.Advance(ctx, tx, scope, o, version)
	return true, err
}

// early answers before the receiver has seen the request.
type early struct{ receiving }

func (e early) handler(at *endpoint, v *signing.Verifier) (http.Handler, error) {
	h, err := e.receiving.handler(at, v)
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.WriteHeader(http.StatusOK)
		h.ServeHTTP(rw, r)
	}), err
}

// Each deliberate breakage of receivers is found.
func TestFindsBrokenReceivers(t *testing.T) {
	if race.Enabled {
		t.Skip("there are no goroutines to race, and without the race detector it is much faster")
	}
	on := func(broken func(s dedupStore[*dedupmemory.Tx]) dedupStore[*dedupmemory.Tx]) func() receiving {
		return func() receiving {
			store := dedupmemory.New()
			return &application[*dedupmemory.Tx]{store: broken(store), inTx: store.InTx}
		}
	}
	for name, x := range map[string]struct {
		breaks string
		by     func() receiving
	}{
		"a marker is forgotten": {"I10", on(func(s dedupStore[*dedupmemory.Tx]) dedupStore[*dedupmemory.Tx] {
			return forgetful{s, map[string]time.Time{}}
		})},
		"an older version is newer": {"I10", on(func(s dedupStore[*dedupmemory.Tx]) dedupStore[*dedupmemory.Tx] { return careless{s} })},
		"2xx before the commit":     {"I11", func() receiving { return early{inMemoryReceiving()} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(60) {
				_, err := Run(t.Context(), received{Memory(), x.by}, Config{Seed: seed, Events: 100})
				var v *Violation
				if errors.As(err, &v) {
					require.Equal(t, x.breaks, v.Invariant, v)
					return
				}
				require.NoError(t, err)
			}
			t.Fatalf("%s was not found to be broken", x.breaks)
		})
	}
}
