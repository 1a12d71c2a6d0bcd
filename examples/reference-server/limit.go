package main

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/surehook/surehook/sender/jobs"
)

// limits bound what one subscriber may have and do. 0: no limit. The operator has none.
type limits struct{ subscriptions, jobs, requests int }

// After how many seconds it is worth a try again: requests, once there is room.
const (
	retrySubscriptions = 60 // somebody must delete one first
	retryJobs          = 5
	retryExports       = 5
)

// Exports at a time, in one process. Each that runs reads all that is kept, and each that is
// sent has a part of it in memory for as long as its reader is slow.
const (
	exportsOfOne = 2  // of one caller
	exportsRun   = 4  // as jobs: the others wait
	exportsSent  = 16 // as answers: one more is refused
)

// Dry runs of replays at a time, in one process: the others wait. Each reads all deliveries that
// have a status.
const (
	dryRunsOfOne = 1
	dryRuns      = 2
)

// Replays at a time, in one process. A job that follows one waits, mostly.
const (
	replaysOfOne = 8
	replaysRun   = 64
)

// Large bodies at a time, in one process.
const (
	largeOfOne  = 2  // of one subscriber, until their requests are answered
	largeOfAll  = 64 // of all subscribers, in the same way
	largeLooked = 8  // that are whole, and looked at: the others wait
	largeKept   = 2  // of those, for the operator alone: an answer to a subscriber can take long
	retryLarge  = 1
)

func tooMany(after int, format string, args ...any) *Problem {
	p := problem(http.StatusTooManyRequests, fmt.Sprintf(format, args...))
	p.retryAfter = after
	return p
}

// rates count what comes to this process from each caller: atOnce of them at once, and then
// perSecond a second.
type rates struct {
	atOnce    float64
	perSecond float64
	now       func() time.Time

	mu      sync.Mutex
	callers map[string]*bucket
	swept   time.Time // when forget was called last
}

// bucket is what one may still have at a time.
type bucket struct {
	left float64
	at   time.Time
}

func newRates(atOnce, perSecond float64) *rates {
	return &rates{atOnce: atOnce, perSecond: perSecond, now: time.Now, callers: map[string]*bucket{}}
}

// forgetCallers is how many callers are remembered before those are forgotten, once a
// second, of whom there is nothing to remember.
const forgetCallers = 1000

// take counts a request, and returns after how long there is room if there is none now.
func (r *rates) take(id string) (wait time.Duration, ok bool) {
	if r.perSecond == 0 {
		return 0, true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	b := r.callers[id]
	if b == nil {
		if len(r.callers) >= forgetCallers && now.Sub(r.swept) >= time.Second {
			r.forget(now)
		}
		b = &bucket{left: r.atOnce, at: now}
		r.callers[id] = b
	}
	b.left, b.at = min(r.atOnce, b.left+r.perSecond*now.Sub(b.at).Seconds()), now
	if b.left < 1 {
		return time.Duration((1 - b.left) / r.perSecond * float64(time.Second)), false
	}
	b.left--
	return 0, true
}

// giveBack takes one back that take has counted.
func (r *rates) giveBack(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b := r.callers[id]; b != nil {
		b.left = min(r.atOnce, b.left+1)
	}
}

func (r *rates) forget(now time.Time) {
	r.swept = now
	for id, b := range r.callers {
		if b.left+r.perSecond*now.Sub(b.at).Seconds() >= r.atOnce {
			delete(r.callers, id)
		}
	}
}

// mayAsk refuses a request that is one too many.
func (s *service) mayAsk(c caller) *Problem {
	if c.operator() {
		return nil
	}
	if wait, ok := s.rates.take(c.id); !ok {
		return tooMany(max(1, int(math.Ceil(wait.Seconds()))), "a subscriber may make %d requests a second: ask less often", s.options.limits.requests)
	}
	return nil
}

// maySend gives a request a place to be answered with an export, or refuses it. done leaves the
// place.
func (s *service) maySend(c caller) (done func(), err error) {
	if c.operator() {
		return func() {}, nil
	}
	switch full, ok := s.sending.take(c.id); {
	case ok:
		return func() { s.sending.leave(c.id) }, nil
	case full:
		p := unavailable("as many exports are being sent as can be at a time: try again", nil)
		p.retryAfter = retryExports
		return nil, p
	}
	return nil, tooMany(retryExports, "a subscriber may read %d exports at a time: read one to its end, or leave it", exportsOfOne)
}

// alone has requests of one subscriber, in which something is counted, wait for each
// other until their transactions end.
func (s *service) alone(ctx context.Context, tx *sql.Tx, c caller) error {
	_, err := s.db.exec(ctx, tx, "UPDATE server_subscribers SET id = id WHERE id = $1", c.id)
	return err
}

// roomForSubscription refuses a subscription that is one too many.
func (s *service) roomForSubscription(ctx context.Context, tx *sql.Tx, c caller) error {
	most := s.options.limits.subscriptions
	if c.operator() || most == 0 {
		return nil
	}
	if err := s.alone(ctx, tx, c); err != nil {
		return err
	}
	explicit, _, err := s.countSubscriptions(ctx, tx, c)
	if err == nil && explicit >= most {
		err = tooMany(retrySubscriptions, "a subscriber may have %d subscriptions: delete one, or change one", most)
	}
	return err
}

func (s *service) countSubscriptions(ctx context.Context, tx *sql.Tx, c caller) (explicit, implicit int, err error) {
	const page = 200
	for after := ""; ; {
		some, err := s.db.sender.SubscriptionsTx(ctx, tx, c.id, after, page)
		if err != nil {
			return 0, 0, err
		}
		for _, one := range some {
			if one.Implicit {
				implicit++
			} else {
				explicit++
			}
			after = one.ID
		}
		if len(some) < page {
			return explicit, implicit, nil
		}
	}
}

// roomForJob submits a job unless it is one too many, or would leave behind an origin of
// callback URLs too many.
func (s *service) roomForJob(ctx context.Context, tx *sql.Tx, c caller, callbackURL string, submit func() error) error {
	if c.operator() {
		return submit()
	}
	if err := s.alone(ctx, tx, c); err != nil {
		return err
	}
	if err := s.fewJobs(ctx, tx, c); err != nil {
		return err
	}
	most := s.options.limits.subscriptions
	if most == 0 || callbackURL == "" {
		return submit()
	}
	_, before, err := s.countSubscriptions(ctx, tx, c)
	if err != nil {
		return err
	}
	if err := submit(); err != nil {
		return err
	}
	_, after, err := s.countSubscriptions(ctx, tx, c)
	if err == nil && after > before && after > most {
		err = tooMany(retrySubscriptions, "a subscriber's callback URLs may have %d origins: use one of them, or delete an implicit subscription (GET /subscriptions?implicit=true)", most)
	}
	return err
}

// fewJobs refuses a job that is one too many. Both lists look at the same unfinished jobs.
func (s *service) fewJobs(ctx context.Context, tx *sql.Tx, c caller) error {
	most := s.options.limits.jobs
	if most == 0 {
		return nil
	}
	unfinished := 0
	for _, status := range []jobs.Status{jobs.Queued, jobs.Running} {
		some, _, err := s.db.jobs.ListTx(ctx, tx, jobs.ListQuery{Owner: c.id, Status: status, Limit: most})
		if err != nil {
			return err
		}
		unfinished += len(some)
	}
	if unfinished >= most {
		return tooMany(retryJobs, "a subscriber may have %d unfinished jobs: wait until one has ended, or cancel one", most)
	}
	return nil
}
