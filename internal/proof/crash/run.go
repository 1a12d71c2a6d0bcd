package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/surehook/surehook/sender"
)

// owner is the subscriber of the witness's endpoint.
const owner = "sub_a"

// Config says what to do, and where.
type Config struct {
	// Folder is for SQLite's database, if DSN is empty.
	Folder string
	// DSN is the connection string of a PostgreSQL database, whose search_path is an
	// empty schema.
	DSN string
	// Points are the points at which to kill; nil: all.
	Points []string
	// Kills is the number of processes that are killed, at Points in turn; 0: one
	// at each.
	Kills int
	// Processes is the number of processes that send at a time; 0: 2. One more
	// process receives.
	Processes int
	// Seed decides the order of the points, and at which hit of each the kill
	// comes. The machine decides the rest.
	Seed uint64
	// Defect is planted, to see that Run or Database finds it.
	Defect Defect
}

// Defect is a deliberate defect of the processes that are killed.
type Defect string

const (
	// Early: publishes are acknowledged before they are committed, and [Run] fails.
	Early Defect = "early"
	// Unsynced: publishes are committed without waiting for the disk, and [Database] fails.
	// The processes do nothing else then, because a commit that waits for the disk makes
	// the earlier commits durable, too.
	Unsynced Defect = "unsynced"
)

// Report has the figures of a run. If the error beside it is nil, all of its content has
// been checked.
type Report struct {
	Kills        map[string]int // by point
	Events       int            // that were committed
	Acknowledged int            // of them
	Deliveries   int
	Attempts     int
	Interrupted  int // of the attempts
	Posts        int // bodies that came whole
	Cut          int // bodies that did not come whole
	Jobs         int
	Stopped      int // processes, for longer than their leases lasted
	Late         int // results that came too late
	DeadLetters  int // notices of them
	Disabled     int // notices of it
	DeadSeen     int // dead letters whose notices were looked for while processes went on
	DisabledSeen int // disabled subscriptions, likewise
	Received     int // events that were posted to the receiver until it answered with 200
}

// run has the parent's records.
type run struct {
	cfg     Config
	place   place
	own     *opened
	witness *witness
	rnd     *rand.Rand

	mu     sync.Mutex
	events map[string]string // the acknowledged ones, and their objects
	jobs   []string          // likewise
	late   map[string][]int  // the attempts, by event, whose results came too late
	report Report
}

// Run kills processes, one at each point after the other, while others go on. It lets
// the last ones finish, and checks that every promise was kept. The error has all
// broken promises.
func Run(ctx context.Context, cfg Config) (Report, error) {
	if cfg.Points == nil {
		cfg.Points = Points()
	}
	if cfg.Kills == 0 {
		cfg.Kills = len(cfg.Points)
	}
	return running(ctx, cfg, (*run).killAll)
}

// running sets up, kills some processes, lets the rest finish, and checks.
func running(ctx context.Context, cfg Config, kill func(r *run, ctx context.Context) error) (Report, error) {
	if cfg.Processes == 0 {
		cfg.Processes = 2
	}
	r := &run{cfg: cfg, place: place{cfg.Folder, cfg.DSN}, rnd: rand.New(rand.NewPCG(cfg.Seed, 0)), events: map[string]string{}, late: map[string][]int{}}
	r.report.Kills = map[string]int{}
	var err error
	if r.own, err = r.place.open(ctx, nil); err != nil {
		return r.report, err
	}
	defer func() { r.own.close() }()
	if err := r.setUp(ctx); err != nil {
		return r.report, err
	}
	defer r.witness.close()
	if err := kill(r, ctx); err != nil {
		return r.report, errors.Join(err, ctx.Err())
	}
	again, err := r.place.open(ctx, nil) // the connections may be dead
	if err != nil {
		return r.report, err
	}
	r.own.close()
	r.own = again
	if err := r.finish(ctx); err != nil {
		return r.report, fmt.Errorf("after the last kill: %w", err)
	}
	return r.report, r.check(ctx)
}

func (r *run) setUp(ctx context.Context) error {
	if err := r.own.setUp(ctx); err != nil {
		return err
	}
	_, secret, err := r.own.registry.CreateSubscriber(ctx, sender.NewSubscriber{ID: owner})
	if err != nil {
		return err
	}
	if r.witness, err = newWitness(secret); err != nil {
		return err
	}
	for _, eventType := range []string{plain, failing, replayed} {
		_, err := r.own.registry.Subscribe(ctx, sender.NewSubscription{Subscriber: owner, URL: r.witness.url + "/" + eventType, EventTypes: []string{eventType}})
		if err != nil {
			return err
		}
	}
	return nil
}

// killAll works through the points of the senders and those of the receiver side by
// side.
func (r *run) killAll(ctx context.Context) error {
	points := slices.Clone(r.cfg.Points)
	var send, receive []order
	for n := range r.cfg.Kills {
		if n%len(points) == 0 {
			r.rnd.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
		}
		o := order{
			Place: r.place, Name: fmt.Sprintf("child-%d", n), Point: points[n%len(points)], Hit: 1 + r.rnd.Int64N(2),
			Endpoint: r.witness.url, Defect: r.cfg.Defect,
		}
		if received(o.Point) { // it gets there in a moment
			o.Hit = 1 + r.rnd.Int64N(30)
			receive = append(receive, o)
		} else {
			send = append(send, o)
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return r.receiveAll(ctx, receive) })
	next := make(chan order)
	group.Go(func() error {
		defer close(next)
		for _, o := range send {
			select {
			case next <- o:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	var lanes sync.WaitGroup
	for range r.cfg.Processes {
		lanes.Add(1)
		group.Go(func() error {
			defer lanes.Done()
			for o := range next {
				if err := r.killSender(ctx, o); err != nil {
					return fmt.Errorf("%s, to be killed at %q, hit %d: %w", o.Name, o.Point, o.Hit, err)
				}
			}
			return nil
		})
	}
	done := make(chan struct{})
	go func() { lanes.Wait(); close(done) }()
	group.Go(func() error { return r.stopOne(ctx, done) })
	group.Go(func() error { return r.resumeAll(ctx, done) })
	return group.Wait()
}

// resumeAll checks and resumes disabled subscriptions until the senders are done. No process that
// may be killed resumes them, so that each is seen while it is disabled.
func (r *run) resumeAll(ctx context.Context, done <-chan struct{}) error {
	for {
		select {
		case <-done:
			return r.checkDisabled(ctx)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond): // as an operator looks now and then
		}
		if err := r.checkDisabled(ctx); err != nil {
			return fmt.Errorf("looking at disabled subscriptions: %w", err)
		}
		if err := r.own.resumeDisabled(ctx); err != nil {
			return fmt.Errorf("resuming: %w", err)
		}
	}
}

// stopOne runs one more process. Now and then it stops the process for longer than its
// leases last, and lets it go on. It kills the process after enough stops, or once the
// others are done.
func (r *run) stopOne(ctx context.Context, done <-chan struct{}) error {
	o := order{Place: r.place, Name: "stopped", Endpoint: r.witness.url}
	p, err := o.start(ctx, r.heard)
	if err != nil {
		return err
	}
	defer p.kill()
	for range 2 + r.cfg.Kills/8 { // a process that is stopped while it writes stops all users of SQLite
		select {
		case <-done:
			p.kill()
			return p.killed()
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(300 * time.Millisecond): // at any moment of its work
			if err := p.stop(); err != nil {
				return err
			}
			r.mu.Lock()
			r.report.Stopped++
			r.mu.Unlock()
		}
	}
	p.kill()
	return p.killed()
}

func (r *run) killSender(ctx context.Context, o order) error {
	p, err := o.start(ctx, r.heard)
	if err != nil {
		return err
	}
	if o.Point == midBody {
		r.witness.mu.Lock()
		r.witness.midBody[o.Name] = func() { p.kill(); <-p.heard } // it may write until it has died
		r.witness.mu.Unlock()
	}
	if err := p.killed(); err != nil {
		return err
	}
	r.killed(o.Point)
	return r.checkDead(ctx)
}

func (r *run) killed(point string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Kills[point]++
}

// heard notes a process's acknowledgements.
func (r *run) heard(words []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case len(words) == 3 && words[0] == toldEvent:
		r.events[words[1]] = words[2]
	case len(words) == 2 && words[0] == toldJob:
		r.jobs = append(r.jobs, words[1])
	case len(words) == 3 && words[0] == toldLate:
		number, _ := strconv.Atoi(words[2])
		r.late[words[1]] = append(r.late[words[1]], number)
	}
}
