package simulation

import (
	"context"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/memory"
)

// Memory is an empty database in memory, for one run.
func Memory() Database[*memory.Tx] { return &inMemory{} }

type inMemory struct{ store *memory.Store }

func (m *inMemory) Open(_ context.Context, now func() time.Time) (_ sender.Store[*memory.Tx], err error) {
	if m.store == nil { // it outlives its processes
		m.store, err = memory.New(&memory.Config{Now: now})
	}
	return m.store, err
}

func (*inMemory) Set(context.Context, time.Time) error { return nil }
