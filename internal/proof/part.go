package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/internal/pgtest"
)

// part is one kind of proof. If it has a weight it runs for about a given time. It notes
// figures and failures. If it could not go on, it returns an error, which counts as a
// failure, too.
type part struct {
	name   string
	weight float64 // its minutes of each hour; 0: it ends when all of it is done
	run    func(ctx context.Context, b *bench, during time.Duration, r *result) error
}

// all has the parts in the order in which they run. The parts that end by themselves
// come first, and are not bounded. The others share the remaining time.
func all(o options) []part {
	return []part{
		{"crashes", 0, crashes(o)},
		{"database", 0, database(o)},
		{"defects", 0, defects(o)},
		{"soak", 20, soaks(o)},
		{"simulation", 10, simulations(o)},
	}
}

// share is how long the first of the remaining parts runs: its share of the remaining
// time, by weight, and at least its minutes of each hour, even if the parts before took
// longer.
func share(parts []part, left, whole time.Duration) time.Duration {
	weight := parts[0].weight
	if weight == 0 {
		return 0
	}
	return max(time.Duration(float64(left)*weight/weights(parts)), time.Duration(float64(whole)*weight/60), time.Second)
}

func names(parts []part) string {
	var list []string
	for _, p := range parts {
		list = append(list, p.name)
	}
	return strings.Join(list, ",")
}

func weights(parts []part) (sum float64) {
	for _, p := range parts {
		sum += p.weight
	}
	return sum
}

// choose returns the parts that are named, in their own order.
func choose(parts []part, only string) (chosen []part, err error) {
	if only == "" {
		return parts, nil
	}
	asked := map[string]bool{}
	for name := range strings.SplitSeq(only, ",") {
		asked[strings.TrimSpace(name)] = true
	}
	for _, p := range parts {
		if asked[p.name] {
			chosen = append(chosen, p)
			delete(asked, p.name)
		}
	}
	for name := range asked {
		return nil, fmt.Errorf("there is no part %q: there are %s", name, names(parts))
	}
	return chosen, nil
}

// play runs a part and keeps its result.
func (p part) play(ctx context.Context, b *bench, during time.Duration) *result {
	r := &result{Part: p.name, progress: b.progress, began: time.Now()}
	func() {
		defer func() {
			if v := recover(); v != nil {
				r.fail("it panicked: "+fmt.Sprint(v), "")
			}
		}()
		if err := p.run(ctx, b, during, r); err != nil {
			r.fail(err.Error(), "")
		}
	}()
	r.Took = time.Since(r.began).Round(time.Millisecond).String()
	b.progress(fmt.Sprintf("%s took %s, with %d failures", p.name, r.Took, len(r.Failures)))
	return r
}

// bench has the resources that parts share.
type bench struct {
	options
	progress func(line string)
	server   *pgtest.Server
}

// postgres returns the durable server that parts share, and starts it at the first
// call.
func (b *bench) postgres() (dsn string, err error) {
	if b.server == nil {
		if b.server, err = pgtest.Start(pgtest.Options{Durable: true}); err != nil {
			return "", fmt.Errorf("NOT TESTED on PostgreSQL: %w", err)
		}
	}
	return b.server.DSN(), nil
}

func (b *bench) close() {
	if b.server != nil {
		if err := b.server.Stop(); err != nil {
			b.progress(err.Error())
		}
	}
}

// schema makes an empty schema on a server, and returns its connection string.
func schema(ctx context.Context, dsn string) (_ string, drop func() error, err error) {
	admin, err := sql.Open("pgx", dsn)
	if err != nil {
		return "", nil, err
	}
	defer admin.Close()
	name := strings.ToLower(newid.New("proof_", time.Now()))
	if _, err := admin.ExecContext(ctx, "CREATE SCHEMA "+name); err != nil {
		return "", nil, err
	}
	return pgtest.With(dsn, "search_path", name), func() error {
		admin, err := sql.Open("pgx", dsn)
		if err != nil {
			return err
		}
		_, err = admin.ExecContext(context.WithoutCancel(ctx), "DROP SCHEMA "+name+" CASCADE")
		return errors.Join(err, admin.Close())
	}, nil
}
