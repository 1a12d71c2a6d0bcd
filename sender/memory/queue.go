package memory

import "container/heap"

// queue yields its members in their order. Each can be moved and removed at a
// cost that is logarithmic in their number.
type queue[T member[T]] struct{ items items[T] }

// member is an element that can stand in one queue at a time.
type member[T any] interface {
	comparable
	// before must be a total order, so that the order of the calls does not
	// matter.
	before(other T) bool
	// index holds 1 + the index in the queue, or 0.
	index() *int
}

// put adds x, or moves it to where it belongs now.
func (q *queue[T]) put(x T) {
	if at := *x.index(); at > 0 {
		heap.Fix(&q.items, at-1)
		return
	}
	heap.Push(&q.items, x)
}

// remove does nothing if x is not in the queue.
func (q *queue[T]) remove(x T) {
	if at := *x.index(); at > 0 {
		heap.Remove(&q.items, at-1)
	}
}

// first returns the zero T if there is none.
func (q *queue[T]) first() (first T) {
	if len(q.items) > 0 {
		first = q.items[0]
	}
	return first
}

type items[T member[T]] []T

func (s items[T]) Len() int           { return len(s) }
func (s items[T]) Less(i, j int) bool { return s[i].before(s[j]) }

func (s items[T]) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	*s[i].index(), *s[j].index() = i+1, j+1
}

func (s *items[T]) Push(x any) {
	m := x.(T)
	*s = append(*s, m)
	*m.index() = len(*s)
}

func (s *items[T]) Pop() any {
	last := len(*s) - 1
	x := (*s)[last]
	var none T
	(*s)[last] = none
	*s = (*s)[:last]
	*x.index() = 0
	return x
}
