package main

import "sync"

// places bound what runs at a time in this process: of each caller, and of all together. So
// one caller leaves places to others, and all leave memory and the database to the rest.
type places struct {
	ofOne, ofAll int

	mu    sync.Mutex
	taken map[string]int // by caller; those who have none are not in it
	all   int
}

func newPlaces(ofOne, ofAll int) *places {
	return &places{ofOne: ofOne, ofAll: ofAll, taken: map[string]int{}}
}

// take gives a caller a place, which it must leave. If ok is false it gives none: full tells
// that all are taken, and otherwise the caller has as many as one may have.
func (p *places) take(id string) (full, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[id] >= p.ofOne || p.all >= p.ofAll {
		return p.all >= p.ofAll, false
	}
	p.taken[id]++
	p.all++
	return false, true
}

// leave gives back a place that take has given.
func (p *places) leave(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[id]--; p.taken[id] == 0 {
		delete(p.taken, id)
	}
	p.all--
}
