package sqlite

import (
	"time"

	"github.com/surehook/surehook/sender"
)

var _ sender.LargeSteps = (*Store)(nil)

const (
	// aloneSteps is the size of steps for which nobody waits. With them a dispatcher makes a
	// fifth more deliveries: a commit is mostly its fsync, and pages that the next one
	// changes again.
	aloneSteps = 512
	// Who has written through this store for the last time so long ago may do so again.
	aloneAfter = time.Second
)

// StepSize implements sender.LargeSteps. While others write through this store (in InTx,
// in their Turn, or by what they do in a transaction of their own), a dispatcher's steps
// are as small as sender.LargeSteps calls it: they wait for each to end.
// Other processes, and who goes past the store, are not seen: they poll for the lock, and
// wait for larger steps.
func (s *Store) StepSize() int {
	if since := s.now() - s.othersWroteAt.Load(); since >= 0 && since < aloneAfter.Microseconds() {
		return 0
	}
	return aloneSteps
}
