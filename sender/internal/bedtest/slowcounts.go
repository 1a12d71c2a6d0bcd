package bedtest

import (
	"context"

	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/replay"
)

// SlowCounts is a store whose counts of what a replay would send end when the test lets them.
type SlowCounts struct {
	*memory.Store
	Begun chan struct{} // has an element for each count that has begun, and must have room for it
	End   chan struct{} // lets one count end, or all once it is closed
}

// PreviewReplay implements [replay.Store].
func (s *SlowCounts) PreviewReplay(ctx context.Context, f replay.Filter, most int) (replay.Preview, error) {
	s.Begun <- struct{}{}
	<-s.End
	return s.Store.PreviewReplay(ctx, f, most)
}
