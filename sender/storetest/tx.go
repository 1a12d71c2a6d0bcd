package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/replay"
)

func txRules() []rule {
	return []rule{
		{"commits", "InTx commits if its function returns nil.", txCommits},
		{"rolls back on a panic", "InTx rolls back if its function panics, and the panic goes on, or ends its goroutine, as t.FailNow does; the store can be used.", txPanics},
		{"runs again", "InTx runs a function again whose error matches ErrRetryTx, after rolling back, a few times.", txRetries},
		{"takes turns", "On a database with a single writer, a transaction does not wait longer because others keep coming.", txTurns},
		{"reads", "If those who read need not wait for those who write, as Reader says, no call that only reads waits for the end of a transaction that has changed what it reads.", txReads},
		{"signals", "Woken is signalled after Wake, after InTx with an event, whatever else commits meanwhile, and after a redelivery, once for any number of them.", txWoken},
		{"check", "Check finds nothing wrong with a store that the suite runs on.", txCheck},
		{"ended contexts", "A method whose context has ended returns an error and changes nothing.", txContext},
	}
}

func txCommits(w *world) {
	sub := w.subscribe(w.subscriber(), "*")
	runs := 0
	d := w.draft("a.b")
	w.inTx(func(tx any) error {
		runs++
		_, err := w.Store.PublishTx(w.ctx, tx, []sender.Draft{d})
		return err
	})
	w.equal(runs, 1, "runs of a function without conflicts")
	w.expand()
	w.equal(w.events(sub), sorted(d), "events delivered")
}

func txPanics(w *world) {
	sub := w.subscribe(w.subscriber(), "*")
	for _, c := range []struct {
		how  string
		end  func()
		want any
	}{{"panicking", func() { panic("the producer panicked") }, "the producer panicked"}, {"ending its goroutine", runtime.Goexit, nil}} {
		d := w.draft("a.b")
		recovered := make(chan any)
		go func() {
			defer func() { recovered <- recover() }()
			_ = w.Store.InTx(w.ctx, func(tx any) error {
				if _, err := w.Store.PublishTx(w.ctx, tx, []sender.Draft{d}); err != nil {
					w.Errorf("publishing: %v", err)
				}
				c.end()
				return nil
			})
		}()
		w.equal(<-recovered, c.want, "what was recovered after %s", c.how)
		w.equal(w.expand(), 0, "deliveries made of an event that was published before %s", c.how)
	}
	d := w.draft("a.b")
	w.publish(d)
	w.expand()
	w.equal(w.events(sub), sorted(d), "events delivered")
}

func txRetries(w *world) {
	sub := w.subscribe(w.subscriber(), "*")
	obj := sender.Object{Type: "thing", ID: "1"}
	var published []sender.Draft
	var versions []int64
	w.inTx(func(tx any) error {
		published = append(published, w.draftOn("a.b", obj))
		refs, err := w.Store.PublishTx(w.ctx, tx, published[len(published)-1:])
		w.noError(err, "publishing")
		versions = append(versions, refs[0].Version)
		if len(published) < 3 {
			return fmt.Errorf("the database: %w", sender.ErrRetryTx)
		}
		return nil
	})
	w.equal(versions, []int64{1, 1, 1}, "versions in two runs that rolled back and one that committed")
	w.expand()
	w.equal(w.events(sub), sorted(published[2]), "events delivered")

	runs := 0
	err := w.Store.InTx(w.ctx, func(any) error {
		runs++
		return sender.ErrRetryTx
	})
	w.errorIs(err, sender.ErrRetryTx, "InTx whose function always asks to be run again")
	w.check(runs > 1 && runs <= 100, "a function that always asks to be run again ran %d times, want a few", runs)

	runs = 0
	other := errors.New("other")
	w.errorIs(w.Store.InTx(w.ctx, func(any) error { runs++; return other }), other, "InTx whose function failed")
	w.equal(runs, 1, "runs of a function that failed for good")
}

func txTurns(w *world) {
	if w.ConcurrentWriters {
		return // nobody waits
	}
	const own, many = 40, 4000
	var turns atomic.Int64
	stop := make(chan struct{})
	others := make(chan error, 1)
	turn := func(any) error {
		turns.Add(1)
		for range 1000 { // so that the next caller finds the turn taken
			runtime.Gosched()
		}
		return nil
	}
	go func() {
		for turns.Load() < many {
			select {
			case <-stop:
				others <- nil
				return
			default:
			}
			if err := w.Store.InTx(w.ctx, turn); err != nil {
				others <- err
				return
			}
		}
		others <- nil
	}()
	for range own {
		for last := turns.Load(); turns.Load() == last && len(others) == 0; {
			runtime.Gosched()
		}
		w.inTx(func(any) error { return nil })
	}
	close(stop)
	w.noError(<-others, "InTx")
	w.check(turns.Load() < many, "while one caller had %d turns, another had %d", own, turns.Load())
}

func txWoken(w *world) {
	signalled := func() bool {
		select {
		case <-w.Store.Woken():
			return true
		default:
			return false
		}
	}
	sub := w.subscribe(w.subscriber(), "*")
	signalled()
	w.check(!signalled(), "Woken is signalled without a reason")
	for range 3 {
		w.Store.Wake()
	}
	w.check(signalled(), "Woken is not signalled after Wake")
	w.check(!signalled(), "Woken is signalled more than once for several Wakes")

	d := w.draft("a.b")
	w.publish(d)
	w.check(signalled(), "Woken is not signalled after InTx with an event")
	w.expand()
	w.record(result(w.claimOne(), sender.ClassTimeout))
	signalled()
	w.redeliver(w.delivery(d.ID, sub).ID)
	w.check(signalled(), "Woken is not signalled after a redelivery")
	w.pause(sub)
	signalled()
	w.resume(sub, takeAll)
	w.check(signalled(), "Woken is not signalled after a resume")

	if !w.ConcurrentWriters {
		return
	}
	w.inTx(func(tx any) error {
		_, err := w.Store.PublishTx(w.ctx, tx, []sender.Draft{w.draft("a.b")})
		w.inTx(func(any) error { return nil })
		signalled() // what the other one signals comes before the event is committed
		return err
	})
	w.check(signalled(), "Woken is not signalled after InTx with an event, during which another InTx has committed")
}

func txCheck(w *world) {
	w.noError(w.Store.Check(w.ctx), "Check")
}

func txContext(w *world) {
	d, sub := w.one()
	id := w.delivery(d.ID, sub).ID
	c := w.claimOne()
	w.subscribe(w.subscriber(), "*")
	w.publish(w.draft("a.b"))
	before := w.get(id)
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	full := dispatch.ClaimParams{Lease: lease, Token: w.token(), Lanes: lanes(plenty)}
	for name, call := range map[string]func() error{
		"InTx": func() error { return w.Store.InTx(ctx, func(any) error { return nil }) },
		"Step, expanding": func() error {
			_, _, err := w.Store.Step(ctx, dispatch.ExpandParams{Events: 10, Deliveries: 10}, dispatch.Batch{})
			return err
		},
		"Step, recording and claiming": func() error {
			_, _, err := w.Store.Step(ctx, dispatch.ExpandParams{}, dispatch.Batch{Results: []dispatch.Result{result(c, sender.ClassNone)}, Decide: decide, Claim: full})
			return err
		},
		"Release":    func() error { return w.Store.Release(ctx, []dispatch.Release{{Key: c.Key, Token: c.Token}}) },
		"Sweep":      func() error { _, err := w.Store.Sweep(ctx, dispatch.SweepParams{Limit: 10}); return err },
		"Keyrings":   func() error { _, err := w.Store.Keyrings(ctx, []int64{c.Target.SubscriberNumber}); return err },
		"Delivery":   func() error { _, err := w.Store.Delivery(ctx, id, whole); return err },
		"Deliveries": func() error { _, _, err := w.Store.Deliveries(ctx, history.DeliveryQuery{}); return err },
		"Redeliver":  func() error { return w.Store.Redeliver(ctx, id, time.Time{}) },
		"CreateReplay": func() error {
			_, err := w.Store.CreateReplay(ctx, replay.Replay{Filter: replay.Filter{Status: sender.StatusDelivered}}, replay.Bounds{})
			return err
		},
		"StepReplays": func() error { _, err := w.Store.StepReplays(ctx, 1, nil); return err },
	} {
		w.errorIs(call(), context.Canceled, "%s with a context that has ended", name)
	}
	w.equal(w.get(id), before, "delivery after calls with a context that has ended")
	w.equal(w.expand(), 1, "deliveries made afterwards")

	ctx, cancel = context.WithCancel(w.ctx)
	err := w.Store.InTx(ctx, func(tx any) error {
		_, err := w.Store.PublishTx(w.ctx, tx, []sender.Draft{w.draft("a.b")})
		w.noError(err, "publishing")
		cancel()
		return nil
	})
	w.check(err != nil, "InTx committed although its context ended before its function returned")
	w.equal(w.expand(), 0, "deliveries of an event whose transaction's context ended")

	tx, _, rollback := w.Begin(w.T)
	_, err = w.Store.PublishTx(ctx, tx, []sender.Draft{w.draft("a.b")})
	w.check(err != nil, "PublishTx succeeded with a context that has ended")
	w.noError(rollback(), "rolling back")
	w.equal(w.expand(), 0, "deliveries of an event whose publish failed")
}
