package crash

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Server is a PostgreSQL server that can be killed, of package pgtest.
type Server interface {
	Kill() error
	Restart() error
}

// ofDatabase is the name of its kills in a report.
const ofDatabase = "the database"

// Database kills a PostgreSQL server, cfg.Kills times, or 5, while processes work on
// it. They go on when it is back. It makes the same checks as [Run]: no acknowledged
// event is lost, and an event that is published again under its idempotency key,
// because it was not acknowledged, is there once. Config.DSN names a database and
// schema of the server.
func Database(ctx context.Context, cfg Config, server Server) (Report, error) {
	if cfg.Kills == 0 {
		cfg.Kills = 5
	}
	return running(ctx, cfg, func(r *run, ctx context.Context) error { return r.killDatabase(ctx, server) })
}

func (r *run) killDatabase(ctx context.Context, server Server) (err error) {
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	at := &address{known: make(chan struct{})}
	stop := func() error { return nil }
	var all []*process
	defer func() {
		if err != nil {
			giveUp() // a server that is not back answers nobody
		}
		err = errors.Join(err, stop())
		for _, p := range all {
			p.kill()
			err = errors.Join(err, p.killed())
		}
	}()
	begin := func(name, point string) error {
		o := order{Place: r.place, Name: name, Point: point, Endpoint: r.witness.url, Defect: r.cfg.Defect, Outlives: true}
		p, err := o.start(ctx, func(words []string) { r.heard(words); at.heard(words) })
		if err == nil {
			all = append(all, p)
		}
		return err
	}
	for i := range r.cfg.Processes {
		if err := begin(fmt.Sprintf("child-%d", i), ""); err != nil {
			return err
		}
	}
	if r.cfg.Defect == "" {
		if err := begin("receiver", receiving); err != nil {
			return err
		}
		if stop, err = r.post(ctx, at); err != nil {
			return err
		}
	}
	for range r.cfg.Kills {
		if err := r.more(ctx, 3+r.rnd.IntN(30)); err != nil {
			return err
		}
		if err := errors.Join(server.Kill(), server.Restart()); err != nil {
			return err
		}
		r.killed(ofDatabase)
	}
	return r.more(ctx, 5*r.cfg.Processes) // they recover by themselves after the last kill, too
}

// more waits until n more events were acknowledged.
func (r *run) more(ctx context.Context, n int) error {
	begun := time.Now()
	acknowledged := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.events)
	}
	for until := acknowledged() + n; acknowledged() < until; time.Sleep(time.Millisecond) { // any moment is as good as another
		if err := ctx.Err(); err != nil {
			return err
		}
		if time.Since(begun) > patience {
			return fmt.Errorf("nothing is acknowledged any more, since the database was killed %d times", r.report.Kills[ofDatabase])
		}
	}
	return nil
}
