// Command river works River jobs that each make one signed POST, with the same
// client as the bare POSTs. The benchmark program builds and runs it; it is a
// module of its own so that River is no dependency of the library.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/surehook/surehook/internal/proof/bench/child"
	"github.com/surehook/surehook/internal/proof/bench/post"
	"github.com/surehook/surehook/signing"
)

// params come from the benchmark program.
type params struct {
	DSN     string
	URL     string
	N       int
	Workers int

	// Producer is set for an ordinary load, whose transactions have connections of
	// their own.
	Producer  string
	PerSecond int
}

// drained is the answer to the benchmark program.
type drained struct {
	Seconds float64
	CPU     float64 // in µs, of this process
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "river:", err)
		os.Exit(1)
	}
}

func run() error {
	var p params
	ctx, parent, err := child.Open(&p)
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, p.DSN)
	if err != nil {
		return parent.Fail(err)
	}
	defer pool.Close()
	if p.Producer != "" {
		return ordinary(ctx, parent, pool, p)
	}
	client, err := prepare(ctx, pool, p)
	if err != nil {
		return parent.Fail(err)
	}
	if err := parent.Answer(version()); err != nil {
		return err
	}
	d := drain{client: client, n: p.N}
	return child.Answers(parent, func(question string) (any, error) {
		if question == "warm" {
			return d.warm(ctx)
		}
		return d.rest(ctx)
	})
}

// version is that of River.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == "github.com/riverqueue/river" {
				return d.Version
			}
		}
	}
	return "?"
}

// migrated returns a client that works with the poster's worker, in a database with
// River's tables.
func migrated(ctx context.Context, pool *pgxpool.Pool, poster *poster, config river.Config) (*river.Client[pgx.Tx], error) {
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	config.Workers = river.NewWorkers()
	river.AddWorker(config.Workers, poster)
	config.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	return river.NewClient(driver, &config)
}

// prepare inserts the backlog.
func prepare(ctx context.Context, pool *pgxpool.Pool, p params) (*river.Client[pgx.Tx], error) {
	poster, err := newPoster(p)
	if err != nil {
		return nil, err
	}
	client, err := migrated(ctx, pool, poster, river.Config{
		// The settings of River's own benchmark, because they matter much for
		// its rate.
		FetchCooldown:     2 * time.Millisecond,
		FetchPollInterval: 20 * time.Millisecond,
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: p.Workers}},
	})
	if err != nil {
		return nil, err
	}
	const batch = 5000
	for done := 0; done < p.N; {
		jobs := make([]river.InsertManyParams, min(batch, p.N-done))
		for i := range jobs {
			id, body := post.Event(done + i)
			jobs[i].Args = delivery{ID: id, Subscription: (done + i) % len(poster.urls), Body: body}
		}
		if _, err := client.InsertMany(ctx, jobs); err != nil {
			return nil, err
		}
		done += len(jobs)
	}
	for _, settle := range []string{"VACUUM (ANALYZE)", "CHECKPOINT"} {
		if _, err := pool.Exec(ctx, settle); err != nil {
			return nil, err
		}
	}
	return client, nil
}

// drain works all jobs. As in River's own benchmark a job counts once its
// completion was stored.
type drain struct {
	client    *river.Client[pgx.Tx]
	n         int
	completed <-chan *river.Event
	end       func()
	cpu       float64
	began     time.Time
}

// warm works the first jobs, and returns how many remain.
func (d *drain) warm(ctx context.Context) (left int, err error) {
	d.completed, d.end = d.client.SubscribeConfig(&river.SubscribeConfig{
		ChanSize: d.n + 1, // the rest is dropped if it does not fit
		Kinds:    []river.EventKind{river.EventKindJobCompleted, river.EventKindJobFailed, river.EventKindJobCancelled},
	})
	if err := d.client.Start(ctx); err != nil {
		return 0, err
	}
	if err := d.work(ctx, d.n/20); err != nil {
		return 0, err
	}
	d.n -= d.n / 20
	d.cpu, d.began = child.CPU(), time.Now()
	return d.n, nil
}

// rest works the others.
func (d *drain) rest(ctx context.Context) (drained, error) {
	defer d.end()
	if err := d.work(ctx, d.n); err != nil {
		return drained{}, err
	}
	t := drained{Seconds: time.Since(d.began).Seconds(), CPU: child.CPU() - d.cpu}
	return t, d.client.Stop(ctx)
}

func (d *drain) work(ctx context.Context, n int) error {
	for range n {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event, ok := <-d.completed:
			if !ok {
				return errors.New("the client stopped")
			}
			if event.Kind != river.EventKindJobCompleted {
				return fmt.Errorf("job %d: %s: %v", event.Job.ID, event.Kind, event.Job.Errors)
			}
		}
	}
	return nil
}

// delivery is a job: one event for one subscription.
type delivery struct {
	ID           string          `json:"id"`
	Subscription int             `json:"subscription"`
	Body         json.RawMessage `json:"body"`
}

// Kind implements river.JobArgs.
func (delivery) Kind() string { return "delivery" }

// poster is the worker.
type poster struct {
	river.WorkerDefaults[delivery]
	client *post.Client
	urls   []*url.URL
}

func newPoster(p params) (*poster, error) {
	client, err := post.New(p.Workers, signing.DefaultSchemes())
	if err != nil {
		return nil, err
	}
	w := &poster{client: client}
	for i := range 10 {
		u, err := url.Parse(fmt.Sprintf("%s/hook/%d", p.URL, i))
		if err != nil {
			return nil, err
		}
		w.urls = append(w.urls, u)
	}
	return w, nil
}

// Work makes the job's POST.
func (w *poster) Work(ctx context.Context, job *river.Job[delivery]) error {
	return w.client.Post(ctx, w.urls[job.Args.Subscription], job.Args.ID, job.Attempt, job.Args.Body)
}
