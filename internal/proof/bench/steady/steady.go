package steady

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/surehook/surehook/internal/proof/bench/child"
)

// Size is the size of the events' bodies, in bytes.
const Size = 800

// Rows is the number of rows of the producer's own table. Each transaction changes one.
const (
	Rows      = 1000
	ChangeRow = "UPDATE business SET n = n + 1 WHERE id = $1"
)

// The parent's questions.
const (
	AskGo   = "go"   // begin the load; the answer comes at once
	AskUsed = "used" // the answer is a Used
	AskEnd  = "end"  // end the load; the answer has the time of each event's commit, by its id
)

// Before the load the process commits warmRate events a second for a while, and then
// rests. By then connections are made, statements have their final plans, and caches
// are warm.
const (
	warmRate = 50
	warm     = 2 * time.Second
	rest     = time.Second
)

// Begun is the time after AskGo at which the load is steady.
const Begun = warm + rest + time.Second

// Load is the work of a process.
type Load struct {
	// PerSecond is the number of events that are committed in a second, about
	// evenly; 0: none.
	PerSecond int
	// Commit commits the ith event in a transaction of its own, and returns the event's
	// id. Others may be under way.
	Commit func(ctx context.Context, i int) (id string, err error)
	// Syncs returns how often the process has waited for a disk; nil: this is not
	// counted.
	Syncs func() int64
}

// Used has the resources that a process has used so far.
type Used struct {
	CPU       float64 // in µs
	Committed int
	Syncs     int64
}

// Serve lets the parent drive a load, until it asks no more.
func (l Load) Serve(ctx context.Context, parent *child.Parent) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := run{Load: l, committed: map[string]time.Time{}, ended: make(chan struct{})}
	return child.Answers(parent, func(question string) (any, error) {
		switch question {
		case AskGo:
			go r.produce(ctx)
			return nil, nil
		case AskUsed:
			return r.used(), nil
		case AskEnd:
			cancel()
			<-r.ended
			return r.committed, r.failed
		}
		return nil, fmt.Errorf("the load is asked for %q", question)
	})
}

// run is a load that has begun.
type run struct {
	Load
	ended chan struct{}

	mu        sync.Mutex
	committed map[string]time.Time
	failed    error
}

func (r *run) used() Used {
	u := Used{CPU: child.CPU()}
	if r.Syncs != nil {
		u.Syncs = r.Syncs()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	u.Committed = len(r.committed)
	return u
}

// produce commits events until ctx ends, and waits for the open commits.
func (r *run) produce(ctx context.Context) {
	defer close(r.ended)
	var under sync.WaitGroup
	defer under.Wait()
	began := time.Now()
	i := 0
	for at := range times(r.PerSecond) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(began.Add(at))):
		}
		n := i
		under.Go(func() { r.commit(context.WithoutCancel(ctx), n) })
		i++
	}
	<-ctx.Done()
}

func (r *run) commit(ctx context.Context, i int) {
	id, err := r.Commit(ctx, i)
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.failed = errors.Join(r.failed, err)
		return
	}
	r.committed[id] = now
}

// times are the times of the commits, since the beginning. Each event has its own part
// of a second, and a random time within it. So each second has as many events, and
// their distances vary.
func times(perSecond int) func(yield func(time.Duration) bool) {
	return func(yield func(time.Duration) bool) {
		lot := rand.New(rand.NewPCG(uint64(perSecond), 1))
		in := func(from time.Duration, rate, i int) time.Duration {
			const edge = 0.05 // no event is at the ends of a second: measurements begin and end there
			part := time.Second / time.Duration(rate)
			return from + time.Duration(i)*part + time.Duration((edge+(1-2*edge)*lot.Float64())*float64(part))
		}
		for i := range int(warmRate * warm / time.Second) {
			if !yield(in(0, warmRate, i)) {
				return
			}
		}
		for i := 0; perSecond > 0; i++ {
			if !yield(in(warm+rest, perSecond, i)) {
				return
			}
		}
	}
}
