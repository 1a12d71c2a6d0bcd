package http1

import (
	"context"
	"sync"
)

// endings abort the exchanges under way when their contexts end. Contexts with the same
// Done channel end together, and have one function that waits for it. One for each
// exchange would cost more than the rest of its context.
type endings struct {
	mu sync.Mutex
	by map[<-chan struct{}]*ending
}

// ending has the exchanges under way whose contexts end together. endings.mu guards it.
type ending struct {
	under []*exchange
	stop  func() bool // stops the function that waits
	ended bool        // the exchanges were aborted
}

// add makes an exchange be aborted when its context ends.
func (es *endings) add(x *exchange) {
	done := x.ctx.Done()
	if done == nil {
		return
	}
	es.mu.Lock()
	defer es.mu.Unlock()
	e := es.by[done]
	if e == nil {
		if es.by == nil {
			es.by = map[<-chan struct{}]*ending{}
		}
		e = &ending{}
		es.by[done] = e
		e.stop = context.AfterFunc(x.ctx, func() { es.abort(done, e) })
	}
	x.ending, x.nth = e, len(e.under)
	e.under = append(e.under, x)
}

func (es *endings) abort(done <-chan struct{}, e *ending) {
	es.mu.Lock()
	defer es.mu.Unlock()
	e.ended = true
	if es.by[done] == e {
		delete(es.by, done)
	}
	for _, x := range e.under {
		x.conn.abort()
	}
}

// remove ends what add has begun: the connection is left alone from then on. It reports
// whether the exchange was over before its context.
func (es *endings) remove(x *exchange) bool {
	e := x.ending
	if e == nil {
		return true
	}
	es.mu.Lock()
	defer es.mu.Unlock()
	x.ending = nil
	if e.ended {
		return false
	}
	last := len(e.under) - 1
	e.under[x.nth], e.under[last].nth = e.under[last], x.nth
	e.under[last], e.under = nil, e.under[:last]
	if last == 0 {
		e.stop()
		delete(es.by, x.ctx.Done())
	}
	return x.ctx.Err() == nil
}
