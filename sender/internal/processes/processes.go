// Package processes remembers which processes claim from a store. While a store knows
// only its own, its statements need not check whose work they find.
package processes

import (
	"sync/atomic"

	"github.com/surehook/surehook/sender/dispatch"
)

// Known has the processes that the store read last. The zero value has none. It is safe
// for concurrent use.
type Known struct {
	all atomic.Pointer[[]dispatch.Presence]
}

// Know remembers the processes that were read, unless err is set. It keeps the slice.
func (k *Known) Know(all []dispatch.Presence, err error) {
	if err == nil {
		k.all.Store(&all)
	}
}

// Besides tells whether a process other than this one is known.
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

// Shareable is a claim's statement in two forms. Shared passes over the work of other
// processes. Alone does not check for it, and is sent while no other process is known;
// then both find the same.
type Shareable struct{ Alone, Shared string }

// Of returns the form to send.
func (s *Shareable) Of(shared bool) string {
	if shared {
		return s.Shared
	}
	return s.Alone
}
