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

// part is one kind of proof. It runs for about a time if it has a weight, notes figures
// and failures, and returns what kept it from going on, which is a failure, too.
type part struct {
	name   string
	weight float64 // minutes of an hour that it goes on for; 0: it ends when all of it is done
	run    func(ctx context.Context, b *bench, during time.Duration, r *result) error
}

// all are the parts in the order in which they run. Those that end when all of it is
// done come first, take as long as they take, and leave the rest to those that go on
// for as long as there is time.
func all(o options) []part {
	return []part{
		{"crashes", 0, crashes(o)},
		{"database", 0, database(o)},
		{"defects", 0, defects(o)},
		{"soak", 20, soaks(o)},
		{"simulation", 10, simulations(o)},
	}
}

// share is how long the first of the parts that are left goes on: what is left of the
// time, by weight, and its minutes of each hour even if those before took longer.
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

// play runs a part and keeps what came of it.
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

// bench has what parts work on.
type bench struct {
	options
	progress func(line string)
	server   *pgtest.Server
}

// postgres returns the server that parts share, which is durable and is started when
// it is first asked for.
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

// schema makes an empty schema on a server, and returns how to get there.
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
