package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/internal/proof/bench/child"
	"github.com/surehook/surehook/internal/proof/bench/post"
	"github.com/surehook/surehook/internal/proof/bench/steady"
	"github.com/surehook/surehook/sender"
)

const (
	commits   = "commits/s"
	commitP50 = "p50 ms"
	commitP99 = "p99 ms"
	// rows is the number of the application's own rows, which it changes in turn.
	rows = steady.Rows
)

// published is a way to write an event within a transaction that has changed a row.
type published[Tx any] struct {
	name       string
	least, aim float64
	inTx       func(ctx context.Context, fn func(tx Tx) error) error // nil: the application's own
	// write is given the row that was changed.
	write func(ctx context.Context, tx Tx, pub *sender.Publisher[Tx], row int) error
}

// publish measures the cost of an event for the producer's transaction.
func publish[Tx any](k kind[Tx]) scenario {
	connections := []int{1, 16, 64}
	s := scenario{
		name: "publish-" + k.name,
		question: "A producer's transaction on " + k.text + ", in ordinary round trips: begin, one UPDATE, one event, commit; " +
			"beside the same with a plain INSERT of as many bytes in place of the event.",
		columns: []string{commits, commitP50, commitP99, drivers, databaseCPU},
	}
	for _, at := range connections {
		ways := waysToPublish[Tx](k.name, nil)
		plain := ways[0]
		for _, w := range ways[1:] {
			s.ratios = append(s.ratios, ratio{figure: commits, of: w.at(at), over: []string{plain.at(at)}, least: w.least, aim: w.aim})
			if w.name == assigned {
				s.ratios = append(s.ratios, ratio{figure: commits, of: w.at(at), over: []string{ways[1].at(at)}})
			}
		}
	}
	s.open = func(ctx context.Context, b *bench) (measures []measure, _ func() error, err error) {
		p, err := k.fresh(ctx, b)
		if err != nil {
			return nil, nil, err
		}
		if err := p.applicationTables(ctx); err != nil {
			return nil, p.close, err
		}
		pub, err := sender.NewPublisher(p.store, nil)
		if err != nil {
			return nil, p.close, err
		}
		ways := waysToPublish(k.name, p)
		for _, at := range connections {
			for _, w := range ways {
				measures = append(measures, func(ctx context.Context) ([]sample, error) {
					inTx := w.inTx
					if inTx == nil {
						inTx = p.inTx
					}
					figures, err := p.commit(ctx, inTx, at, time.Duration(b.of(2000, 300))*time.Millisecond, k.meter(ctx, b), func(ctx context.Context, tx Tx, row int) error {
						return w.write(ctx, tx, pub, row)
					})
					return one(w.at(at), figures), err
				})
			}
		}
		return measures, p.close, nil
	}
	return s
}

func (w *published[Tx]) at(connections int) string {
	return fmt.Sprintf("%s, %d at a time", w.name, connections)
}

// waysToPublish begin with the plain INSERT. Without a place they have only names.
func waysToPublish[Tx any](kind string, p *place[Tx]) []published[Tx] {
	body := post.Data(post.Size)
	// Its id is made like an event's, and it has the same index.
	plain := func(ctx context.Context, tx Tx, _ *sender.Publisher[Tx], _ int) error {
		return p.exec(ctx, tx, insertPlain, newid.New("evt_", time.Now()), body)
	}
	// An event with a version needs at least a row with the change and its object,
	// found by its id, and the row that orders the changes.
	row := func(ctx context.Context, tx Tx, _ *sender.Publisher[Tx], row int) error {
		id, object := newid.New("evt_", time.Now()), strconv.Itoa(row)
		if kind == onPostgres.name {
			return p.exec(ctx, tx, "WITH v AS ("+raise+" RETURNING version) "+insertByHand+"v", "thing", object, id, "thing.changed", body)
		}
		if err := p.exec(ctx, tx, raise, "thing", object); err != nil {
			return err
		}
		return p.exec(ctx, tx, insertByHand+"versions WHERE type = $1 AND id = $2", "thing", object, id, "thing.changed", body)
	}
	sample := event(0, "", post.Size)
	of := func(row int) sender.Event {
		e := sample
		e.Object.ID = strconv.Itoa(row)
		return e
	}
	// A transaction that has the row's lock takes the next version, so versions
	// rise.
	var version atomic.Int64
	give := func(ctx context.Context, tx Tx, pub *sender.Publisher[Tx], row int) error {
		e := of(row)
		e.Object.Type, e.Version = "given", version.Add(1)
		_, err := pub.PublishTx(ctx, tx, e)
		return err
	}
	assign := func(ctx context.Context, tx Tx, pub *sender.Publisher[Tx], row int) error {
		_, err := pub.PublishTx(ctx, tx, of(row))
		return err
	}
	key := func(ctx context.Context, tx Tx, pub *sender.Publisher[Tx], row int) error {
		e := of(row)
		e.IdempotencyKey = newid.New("key_", time.Now())
		_, err := pub.PublishTx(ctx, tx, e)
		return err
	}
	all := []published[Tx]{
		{name: "plain INSERT", write: plain},
		{name: byHand, write: row},
		{name: "event, version given", least: 0.9, aim: 1, write: give},
		{name: assigned, least: 0.78, aim: 0.9, write: assign},
		{name: "event, version assigned, idempotency key", least: 0.7, aim: 0.9, write: key},
	}
	if kind == onPostgres.name { // on SQLite the application does it anyway
		through := published[Tx]{name: "event, version assigned, in the publisher's InTx", write: assign}
		if p != nil {
			through.inTx = p.store.InTx
		}
		all = append(all, through)
	}
	return all
}

const (
	assigned     = "event, version assigned"
	byHand       = "the event's columns and a version, by hand"
	insertPlain  = "INSERT INTO plain (id, body) VALUES ($1, $2)"
	raise        = "INSERT INTO versions AS o (type, id, version) VALUES ($1, $2, 1) ON CONFLICT (type, id) DO UPDATE SET version = o.version + 1"
	insertByHand = "INSERT INTO by_hand (object_type, object_id, id, type, version, created_at, body) SELECT $1, $2, $3, $4, version, CURRENT_TIMESTAMP, $5 FROM "
)

// applicationTables makes the tables of an application of its own.
func (p *place[Tx]) applicationTables(ctx context.Context) error {
	return p.inTx(ctx, func(tx Tx) error {
		for _, statement := range []string{
			"CREATE TABLE business (id BIGINT PRIMARY KEY, n BIGINT NOT NULL)",
			"CREATE TABLE versions (type TEXT NOT NULL, id TEXT NOT NULL, version BIGINT NOT NULL, PRIMARY KEY (type, id))",
			"CREATE TABLE by_hand (id TEXT PRIMARY KEY, type TEXT NOT NULL, object_type TEXT NOT NULL, object_id TEXT NOT NULL, version BIGINT NOT NULL, " +
				"created_at TIMESTAMP NOT NULL, body " + p.bytes + " NOT NULL)",
			"CREATE TABLE plain (id TEXT PRIMARY KEY, body " + p.bytes + " NOT NULL)",
			"CREATE TABLE effects (id TEXT PRIMARY KEY, body " + p.bytes + " NOT NULL)",
		} {
			if err := p.exec(ctx, tx, statement); err != nil {
				return err
			}
		}
		for i := range rows {
			if err := p.exec(ctx, tx, "INSERT INTO business (id, n) VALUES ($1, 0)", i); err != nil {
				return err
			}
		}
		return nil
	})
}

// warmUps is the number of transactions of each worker that do not count: in them
// connections are made and statements prepared.
const warmUps = 5

// commit runs transactions for a time, a number of them at once. Each does one UPDATE
// and calls write.
func (p *place[Tx]) commit(ctx context.Context, inTx func(context.Context, func(Tx) error) error, at int, during time.Duration, database meter, write func(ctx context.Context, tx Tx, row int) error) (map[string]float64, error) {
	transaction := func() error {
		return inTx(ctx, func(tx Tx) error {
			row := rand.IntN(rows)
			if err := p.exec(ctx, tx, steady.ChangeRow, row); err != nil {
				return err
			}
			return write(ctx, tx, row)
		})
	}
	if _, err := repeat(at, transaction, func(n int) bool { return n < warmUps }); err != nil {
		return nil, err
	}
	figures := map[string]float64{}
	var took []float64
	var seconds, cpu float64
	work := func() (err error) {
		before, began := child.CPU(), time.Now()
		took, err = repeat(at, transaction, func(int) bool { return time.Since(began) < during })
		seconds, cpu = time.Since(began).Seconds(), child.CPU()-before
		return err
	}
	if database != nil {
		work = metered(work, database, 1, figures, databaseCPU)
	}
	if err := work(); err != nil {
		return nil, err
	}
	n := float64(len(took))
	figures[commits], figures[drivers] = n/seconds, cpu/n
	if database != nil {
		figures[databaseCPU] /= n
	}
	figures[commitP50], figures[commitP99] = quantile(took, 0.5), quantile(took, 0.99)
	return figures, nil
}

// repeat runs fn in a number of goroutines, in each for as long as again, which gets
// the number of runs so far, is true. It returns how many ms each run took.
func repeat(at int, fn func() error, again func(n int) bool) (took []float64, err error) {
	var mu sync.Mutex
	var all errgroup.Group
	for range at {
		all.Go(func() error {
			var own []float64
			for again(len(own)) {
				began := time.Now()
				if err := fn(); err != nil {
					return err
				}
				own = append(own, time.Since(began).Seconds()*1e3)
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, own...)
			return nil
		})
	}
	err = all.Wait()
	return took, err
}
