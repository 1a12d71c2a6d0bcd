package simulation

import (
	"context"
	"time"

	dedupmemory "github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/storetest"
)

// Memory is an empty database in memory, for one run.
func Memory() Database[*memory.Tx] { return &inMemory{} }

type inMemory struct{ store *memory.Store }

func (m *inMemory) Open(_ context.Context, now, _ func() time.Time) (_ storetest.Store[*memory.Tx], err error) {
	if m.store == nil { // the store outlives its processes
		m.store, err = memory.New(&memory.Config{Now: now})
	}
	return m.store, err
}

// inMemoryReceiving is an application whose effects are the endpoint's notes.
func inMemoryReceiving() receiving {
	store := dedupmemory.New()
	return &application[*dedupmemory.Tx]{store: store, inTx: store.InTx}
}
