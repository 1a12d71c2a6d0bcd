package bedtest

import (
	"slices"
	"sync"
)

// Noted keeps the values that a hook is given, to be read while others are added.
type Noted[T any] struct {
	mu  sync.Mutex
	all []T
}

// Add adds a value.
func (n *Noted[T]) Add(x T) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, x)
}

// List returns the values so far, in the order in which they came.
func (n *Noted[T]) List() []T {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.all)
}
