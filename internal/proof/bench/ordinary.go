package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/surehook/surehook/internal/proof/bench/child"
	"github.com/surehook/surehook/internal/proof/bench/steady"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// The figures of an ordinary load are per event, or per second if there are no events.
const (
	databaseMS   = "database CPU ms" // of all connections, the producer's too
	dispatcherMS = "of it dispatching"
	serverMS     = "checkpoints, log, vacuum"
	processMS    = "process CPU ms" // of producer and dispatcher, without the receiver
	fsyncs       = "fsyncs"         // the producer's too
	dispatcherFS = "of them the dispatcher's"
)

// ordinaryRates are in events per second.
var ordinaryRates = []int{0, 1, 10, 50, 200}

const (
	surehookOrdinary = "Surehook"
	surehookLater    = "Surehook, MaxDelay 100 ms"
	riverOrdinary    = "River"
)

// riversDelay is River's default time between two looks for new jobs.
const riversDelay = 100 * time.Millisecond

// atRate returns a variant's name.
func atRate(name string, perSecond int) string { return fmt.Sprintf("%s, %d/s", name, perSecond) }

// ordinaryOnPostgres compares with River, with its defaults.
func ordinaryOnPostgres() scenario {
	s := scenario{
		name: "ordinary-postgres",
		question: "What an event costs on PostgreSQL at ordinary rates, and how soon it arrives: one process changes a row and publishes in a transaction of its own, " +
			"and delivers to one subscription, beside a River client that does the same. At 0/s: per second.",
		columns: []string{databaseMS, dispatcherMS, serverMS, processMS, arriveP50, arriveP99},
		ratios:  []ratio{{figure: databaseMS, of: atRate(surehookOrdinary, 0), least: 5, smallerBetter: true}},
	}
	most := map[int]float64{10: 1.2, 50: 1.6, 200: 1.5}
	for _, rate := range ordinaryRates {
		beside := []string{atRate(riverOrdinary, rate)}
		var aim, later float64
		if most[rate] > 0 {
			aim, later = 1, 1.1
		}
		s.ratios = append(s.ratios,
			ratio{figure: databaseMS, of: atRate(surehookOrdinary, rate), over: beside, least: most[rate], aim: aim, smallerBetter: true},
			ratio{figure: databaseMS, of: atRate(surehookLater, rate), over: beside, least: later, smallerBetter: true},
			ratio{figure: processMS, of: atRate(surehookOrdinary, rate), over: beside, least: 1.2, smallerBetter: true})
	}
	s.ratios = append(s.ratios,
		ratio{figure: arriveP50, of: atRate(surehookOrdinary, 200), least: 10, smallerBetter: true},
		ratio{figure: arriveP99, of: atRate(surehookOrdinary, 200), least: 25, smallerBetter: true})
	s.open = func(ctx context.Context, b *bench) ([]measure, func() error, error) {
		program, err := b.riverProgram(ctx)
		if err != nil {
			return nil, nil, err
		}
		return openOrdinary(ctx, b, onPostgres, ordinaryRates, surehookRun(onPostgres, surehookOrdinary, 0),
			surehookRun(onPostgres, surehookLater, riversDelay), riverRun(program))
	}
	return s
}

// ordinaryOnSQLite compares with nothing.
func ordinaryOnSQLite() scenario {
	s := scenario{
		name: "ordinary-sqlite",
		question: "What an event costs on SQLite at ordinary rates, and how soon it arrives: one process changes a row and publishes in a transaction of its own, " +
			"and delivers to one subscription. At 0/s: per second.",
		columns: []string{processMS, fsyncs, dispatcherFS, arriveP50, arriveP99},
	}
	// One commit to claim an event and one to record its result would be 2.
	s.ratios = []ratio{
		{figure: dispatcherFS, of: atRate(surehookOrdinary, 50), least: 1.05, smallerBetter: true},
		{figure: dispatcherFS, of: atRate(surehookOrdinary, 200), least: 0.7, smallerBetter: true},
	}
	s.open = func(ctx context.Context, b *bench) ([]measure, func() error, error) {
		return openOrdinary(ctx, b, onSQLite, ordinaryRates, surehookRun(onSQLite, surehookOrdinary, 0), surehookRun(onSQLite, surehookLater, riversDelay))
	}
	return s
}

// ordinaryRun starts a process in a fresh database, which is ready for its load.
type ordinaryRun[Tx any] struct {
	name  string
	start func(ctx context.Context, b *bench, perSecond int, url string) (*place[Tx], *child.Process, error)
}

// openOrdinary makes the runs take turns at each rate.
func openOrdinary[Tx any](ctx context.Context, b *bench, k kind[Tx], rates []int, runs ...ordinaryRun[Tx]) (all []measure, closeAll func() error, err error) {
	r, err := b.startReceiver(ctx, receiverParams{Arrivals: true})
	if err != nil {
		return nil, nil, err
	}
	for _, rate := range rates {
		for _, run := range runs {
			all = append(all, func(ctx context.Context) ([]sample, error) { return ordinary(ctx, b, k, r, run, rate) })
		}
	}
	return all, r.Stop, nil
}

// surehookRun starts the library's process.
func surehookRun[Tx any](k kind[Tx], name string, maxDelay time.Duration) ordinaryRun[Tx] {
	return ordinaryRun[Tx]{name, func(ctx context.Context, b *bench, perSecond int, url string) (*place[Tx], *child.Process, error) {
		p, err := k.fresh(ctx, b)
		if err != nil {
			return nil, nil, err
		}
		if err := p.applicationTables(ctx); err != nil {
			return nil, nil, errors.Join(err, p.close())
		}
		if _, err := p.register(ctx, registering{prefix: "sub", n: 1, url: hooks(url)}); err != nil {
			return nil, nil, errors.Join(err, p.close())
		}
		c, err := b.start(ctx, "ordinary", ordinaryParams{Database: p.location, PerSecond: perSecond, MaxDelay: maxDelay, Profile: b.profile}, nil)
		if err != nil {
			return nil, nil, errors.Join(err, p.close())
		}
		return p, c, nil
	}}
}

// riverRun starts River's process, with River's defaults.
func riverRun(program string) ordinaryRun[pgx.Tx] {
	return ordinaryRun[pgx.Tx]{riverOrdinary, func(ctx context.Context, b *bench, perSecond int, url string) (*place[pgx.Tx], *child.Process, error) {
		p, err := emptyPostgres(ctx, b)
		if err != nil {
			return nil, nil, err
		}
		if err := p.applicationTables(ctx); err != nil {
			return nil, nil, errors.Join(err, p.close())
		}
		params := map[string]any{"DSN": p.as(forDispatcher), "Producer": p.as(forProducer), "URL": url, "PerSecond": perSecond}
		c, err := child.Start(ctx, "river", program, nil, params, &b.riverVersion)
		if err != nil {
			return nil, nil, errors.Join(err, p.close())
		}
		return p, c, nil
	}}
}

// ordinary measures a load for a while.
func ordinary[Tx any](ctx context.Context, b *bench, k kind[Tx], r *endpoint, run ordinaryRun[Tx], perSecond int) (_ []sample, err error) {
	p, c, err := run.start(ctx, b, perSecond, r.url)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Stop(), p.close()) }()
	if err := p.settle(ctx); err != nil {
		return nil, err
	}
	if _, err := r.arrivals(); err != nil { // drop the last arrivals of the run before, whose ids may be the same
		return nil, err
	}
	if err := c.Ask(steady.AskGo, nil); err != nil {
		return nil, err
	}
	if err := rest(ctx, steady.Begun); err != nil {
		return nil, err
	}
	began, err := k.readUsed(ctx, b, p, c)
	if err != nil {
		return nil, err
	}
	if err := rest(ctx, time.Duration(b.of(10, 2))*time.Second); err != nil {
		return nil, err
	}
	ended, err := k.readUsed(ctx, b, p, c)
	if err != nil {
		return nil, err
	}
	var committed commitTimes
	if err := c.Ask(steady.AskEnd, &committed); err != nil {
		return nil, err
	}
	maps.DeleteFunc(committed, func(_ string, at time.Time) bool { return at.Before(began.at) || at.After(ended.at) })
	took, err := r.latencies(ctx, committed)
	if err != nil {
		return nil, err
	}
	figures := ended.since(&began, perSecond)
	if perSecond > 0 {
		figures[arriveP50], figures[arriveP99] = quantile(took, 0.5), quantile(took, 0.99)
	}
	return one(atRate(run.name, perSecond), figures), nil
}

// used has the resources that a load has used at a time.
type used struct {
	at time.Time
	steady.Used
	*processes // nil: the database has none
}

func (k kind[Tx]) readUsed(ctx context.Context, b *bench, p *place[Tx], c *child.Process) (u used, err error) {
	u.at = time.Now()
	if err := c.Ask(steady.AskUsed, &u.Used); err != nil {
		return u, err
	}
	if k.processes != nil {
		u.processes, err = k.processes(ctx, b, p.location)
	}
	return u, err
}

// since is the use since an earlier time: per event, or per second if there are no
// events.
func (u *used) since(earlier *used, perSecond int) map[string]float64 {
	n := u.at.Sub(earlier.at).Seconds()
	committed := float64(u.Committed - earlier.Committed)
	if perSecond > 0 {
		n = committed
	}
	figures := map[string]float64{processMS: (u.CPU - earlier.CPU) / 1e3 / n}
	if u.processes == nil {
		synced := float64(u.Syncs - earlier.Syncs)
		figures[fsyncs], figures[dispatcherFS] = synced/n, (synced-committed)/n
		return figures
	}
	by := u.processes.since(earlier.processes)
	figures[databaseMS] = (by[forProducer] + by[forDispatcher]) / 1e3 / n
	figures[dispatcherMS], figures[serverMS] = by[forDispatcher]/1e3/n, by[forServer]/1e3/n
	return figures
}

// rest waits for a time.
func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// ordinaryParams say how an ordinary load is delivered.
type ordinaryParams struct {
	Database  location
	PerSecond int
	MaxDelay  time.Duration // 0: the default
	Profile   string        // folder for profiles; "": none
}

// ordinarily is the process of an ordinary load. Its producer and its dispatcher have a
// pool of connections each.
func ordinarily() error {
	var params ordinaryParams
	ctx, parent, err := child.Open(&params)
	if err != nil {
		return err
	}
	if params.Database.Kind == onPostgres.name {
		p, err := postgresAt(ctx, params.Database.as(forDispatcher), 0)
		if err != nil {
			return parent.Fail(err)
		}
		producer, err := postgresAt(ctx, params.Database.as(forProducer), 0)
		if err != nil {
			return parent.Fail(err)
		}
		return load(ctx, parent, p, func(ctx context.Context, fn func(pgx.Tx) error) error {
			defer p.store.Wake()
			return producer.inTx(ctx, fn)
		}, params)
	}
	countSyncsOnce()
	p, err := sqliteAt(params.Database.DSN)
	if err != nil {
		return parent.Fail(err)
	}
	return load(ctx, parent, p, p.inTx, params)
}

// load runs a dispatcher beside a producer. inTx runs the producer's transactions, and
// wakes the dispatcher.
func load[Tx any](ctx context.Context, parent *child.Parent, p *place[Tx], inTx func(context.Context, func(Tx) error) error, params ordinaryParams) error {
	pub, err := sender.NewPublisher(p.store, nil)
	if err != nil {
		return parent.Fail(err)
	}
	disp, err := dispatch.New(p.store, p.keys, &dispatch.Config{Network: network(), MaxDelay: params.MaxDelay, Logger: warnings})
	if err != nil {
		return parent.Fail(err)
	}
	if err := parent.Answer(nil); err != nil {
		return err
	}
	ended, err := profile(params.Profile)
	if err != nil {
		return parent.Fail(err)
	}
	defer ended()
	stopped := make(chan error, 1)
	go func() { stopped <- disp.Run(ctx) }()
	sample := event(0, registering{prefix: "sub"}.subscriber(0), steady.Size)
	err = steady.Load{PerSecond: params.PerSecond, Syncs: syncs.Load, Commit: func(ctx context.Context, i int) (string, error) {
		e, row := sample, i%rows
		e.Object.ID = strconv.Itoa(row)
		var ref sender.Ref
		err := inTx(ctx, func(tx Tx) (err error) {
			if err := p.exec(ctx, tx, steady.ChangeRow, row); err != nil {
				return err
			}
			ref, err = pub.PublishTx(ctx, tx, e)
			return err
		})
		return ref.ID, err
	}}.Serve(ctx, parent)
	return errors.Join(err, <-stopped)
}
