package sqlite

import (
	"time"

	"github.com/surehook/surehook/sender/dispatch"
)

var _ dispatch.LargeSteps = (*Store)(nil)

const (
	// aloneSteps is the size of a step if nobody else waits to write. With it a
	// dispatcher makes a fifth more deliveries: a commit is mostly its fsync, and pages
	// that the next one changes again.
	aloneSteps = 512
	// aloneAfter is how long others have not written through this store when a dispatcher
	// takes larger steps.
	aloneAfter = time.Second
)

// StepSize implements dispatch.LargeSteps. While others write through this store (in InTx,
// after WaitToWrite, or in a transaction of their own), a dispatcher's steps are as small
// as dispatch.LargeSteps says: the others wait for each to end. Other processes, and
// writers that go past the store, are not seen. They poll for the lock, and wait for
// larger steps.
func (s *Store) StepSize() int {
	if since := s.now() - s.othersWroteAt.Load(); since >= 0 && since < aloneAfter.Microseconds() {
		return 0
	}
	return aloneSteps
}
