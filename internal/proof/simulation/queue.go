package simulation

import (
	"container/heap"
	"time"
)

// queue has the planned events, in the order of their times, and of their planning if
// the times are equal.
type queue struct {
	happenings happenings
	planned    int
}

type happening struct {
	at time.Time
	no int
	do func()
}

func (q *queue) add(at time.Time, do func()) {
	q.planned++
	heap.Push(&q.happenings, happening{at, q.planned, do})
}

// next removes and returns the next event, if it is not after a time.
func (q *queue) next(until time.Time) (h happening, ok bool) {
	if len(q.happenings) == 0 || q.happenings[0].at.After(until) {
		return happening{}, false
	}
	return heap.Pop(&q.happenings).(happening), true
}

type happenings []happening

func (h happenings) Len() int { return len(h) }

func (h happenings) Less(i, j int) bool {
	if !h[i].at.Equal(h[j].at) {
		return h[i].at.Before(h[j].at)
	}
	return h[i].no < h[j].no
}

func (h happenings) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *happenings) Push(x any)   { *h = append(*h, x.(happening)) }

func (h *happenings) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = happening{}
	*h = (*h)[:last]
	return x
}
