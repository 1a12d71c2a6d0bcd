// Package processes is what a store knows of the processes that claim of it: while none is
// known but its own, its statements need not ask whose work it is that they find.
package processes

import (
	"sync/atomic"

	"github.com/surehook/surehook/sender"
)

// Known are the processes that were known lately. The zero value knows none. It is safe for
// concurrent use.
type Known struct {
	all atomic.Pointer[[]sender.Presence]
}

// Know remembers what was read of the processes, unless that failed. It keeps the slice.
func (k *Known) Know(all []sender.Presence, err error) {
	if err == nil {
		k.all.Store(&all)
	}
}

// Besides tells whether others than this one are known.
func (k *Known) Besides(process int64) bool {
	if all := k.all.Load(); all != nil {
		for _, p := range *all {
			if p.Process != process {
				return true
			}
		}
	}
	return false
}

// Shareable is a statement of a claim as it is sent where no other process is known, and
// where some are, whose work is passed over. Both find the same where there is none.
type Shareable struct{ Alone, Shared string }

// Of is the statement to send.
func (s *Shareable) Of(shared bool) string {
	if shared {
		return s.Shared
	}
	return s.Alone
}
