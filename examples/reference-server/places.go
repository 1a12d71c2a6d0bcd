package main

import (
	"context"
	"sync"
)

// places bound what runs at a time in this process: of each caller, and of all together. So
// one caller leaves places to others, and all leave memory and the database to the rest.
type places struct {
	ofOne, ofAll int

	mu    sync.Mutex
	taken map[string]int // by caller; those who have none are not in it
	all   int
	freed chan struct{} // closed when a place is left
}

func newPlaces(ofOne, ofAll int) *places {
	return &places{ofOne: ofOne, ofAll: ofAll, taken: map[string]int{}, freed: make(chan struct{})}
}

// take gives a caller a place, which it must leave. If ok is false it gives none: full tells
// that all are taken, and otherwise the caller has as many as one may have.
func (p *places) take(id string) (full, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taking(id)
}

func (p *places) taking(id string) (full, ok bool) {
	if p.taken[id] >= p.ofOne || p.all >= p.ofAll {
		return p.all >= p.ofAll, false
	}
	p.taken[id]++
	p.all++
	return false, true
}

// wait gives a caller a place once there is one, unless ctx ends before.
func (p *places) wait(ctx context.Context, id string) error {
	for {
		p.mu.Lock()
		_, ok := p.taking(id)
		freed := p.freed
		p.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// leave gives back a place that take or wait has given.
func (p *places) leave(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[id]--; p.taken[id] == 0 {
		delete(p.taken, id)
	}
	p.all--
	close(p.freed)
	p.freed = make(chan struct{})
}
