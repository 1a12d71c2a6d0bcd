package linearizable_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

const (
	leaseTime = 150 * time.Millisecond
	events    = 40
	steps     = 24 // of each worker
)

// The operations on a delivery.
const (
	claims     = "claims"
	records    = "records"
	releases   = "releases"
	interrupts = "interrupts" // finds a lease that has ended
)

// leaseOp is an operation on one delivery. Times are in nanoseconds: Call and Return on
// the processes' clock, At and Due on the database's.
type leaseOp struct {
	Client       int
	Key          dispatch.DeliveryKey
	Kind         string
	Token        int64
	Number       int
	Call, Return int64

	At    int64 // when it was done
	Lost  bool  // the result changed nothing
	Ended bool  // it was a success
	Due   int64 // if it was no success: when the delivery is due again
}

// leaseState is the state of a delivery.
type leaseState struct {
	token  int64 // the last one given
	number int   // likewise
	leased bool
	until  int64 // the lease
	due    int64
	ended  bool
}

// leases is the model: how claims and results change a delivery, one after the other.
var leases = porcupine.Model{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		by := map[dispatch.DeliveryKey][]porcupine.Operation{}
		for _, op := range history {
			key := op.Input.(leaseOp).Key
			by[key] = append(by[key], op)
		}
		for _, part := range by {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return leaseState{} },
	Step: func(state, input, _ any) (bool, any) {
		s, op := state.(leaseState), input.(leaseOp)
		current := s.leased && s.token == op.Token
		switch op.Kind {
		case claims:
			return !s.ended && !s.leased && op.At >= s.due && op.Number == s.number+1, leaseState{token: op.Token, number: op.Number, leased: true, until: op.At + int64(leaseTime)}
		case releases: // with or without effect
			if current {
				s = leaseState{number: s.number - 1}
			}
			return true, s
		case interrupts:
			return current && op.At >= s.until, leaseState{number: s.number, due: op.Due}
		}
		if op.Lost {
			return !current, s
		}
		return current, leaseState{number: s.number, due: op.Due, ended: op.Ended}
	},
	DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%+v", input) },
}

func decide(_ dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
	switch r.Class {
	case sender.ClassNone:
		return dispatch.Decision{Status: sender.StatusDelivered, Health: h}
	case sender.ClassInterrupted:
		return dispatch.Decision{Status: sender.StatusAwaitingRetry, Due: now, Health: h}
	}
	return dispatch.Decision{Status: sender.StatusAwaitingRetry, Due: now.Add(5 * time.Millisecond), Health: h}
}

// dispatch claims, records and releases, and now and then is later than its lease. With
// a defect it gives every result the present token.
func runDispatcher(ctx context.Context, o order, p *place) (any, error) {
	var mu sync.Mutex
	var all []leaseOp
	var wg sync.WaitGroup
	var errs []error
	for i := range workers {
		wg.Go(func() {
			w := leaseWorker{place: p, client: o.Process*workers + i, defect: o.Defect}
			err := w.run(ctx)
			mu.Lock()
			defer mu.Unlock()
			all, errs = append(all, w.ops...), append(errs, err)
		})
	}
	wg.Wait()
	return all, errors.Join(errs...)
}

type leaseWorker struct {
	*place
	client int
	defect bool
	ops    []leaseOp
}

func (w *leaseWorker) run(ctx context.Context) error {
	var have []dispatch.Claimed
	for range steps {
		if _, _, err := w.store.Step(ctx, dispatch.ExpandParams{Events: 10, Deliveries: 20}, dispatch.Batch{}); err != nil {
			return err
		}
		time.Sleep(rand.N(20 * time.Millisecond)) // the time of an attempt
		switch rand.IntN(6) {
		case 0: // others take over meanwhile
			time.Sleep(leaseTime + time.Duration(rand.IntN(50))*time.Millisecond)
		case 1:
			if err := w.release(ctx, have); err != nil {
				return err
			}
			have = nil
		}
		var err error
		if have, err = w.step(ctx, have); err != nil {
			return err
		}
	}
	return nil
}

func (w *leaseWorker) release(ctx context.Context, have []dispatch.Claimed) error {
	rs := make([]dispatch.Release, len(have))
	for i, c := range have {
		rs[i] = dispatch.Release{Key: c.Key, Token: c.Token}
	}
	call := clock()
	err := w.store.Release(ctx, rs)
	for _, c := range have {
		w.ops = append(w.ops, leaseOp{Client: w.client, Key: c.Key, Kind: releases, Token: c.Token, Number: c.Number, Call: call, Return: clock()})
	}
	return err
}

func (w *leaseWorker) step(ctx context.Context, have []dispatch.Claimed) ([]dispatch.Claimed, error) {
	b := dispatch.Batch{Decide: decide, Claim: dispatch.ClaimParams{Lease: leaseTime, Token: rand.Int64()}}
	for l := range b.Claim.Lanes {
		b.Claim.Lanes[l] = dispatch.LaneParams{Slots: 4, PerSubscriber: 4, PerSubscription: 4}
	}
	for _, c := range have {
		r := dispatch.Result{Key: c.Key, Token: c.Token, Number: c.Number, StartedAt: c.At}
		if rand.IntN(4) > 0 || w.defect { // then no delivery ends
			r.Class, r.StatusCode = sender.ClassStatus, 500
		}
		if w.defect {
			err := w.db.QueryRowContext(ctx, fmt.Sprintf("SELECT token, number FROM surehook_leases WHERE event = %d AND subscription = %d", c.Key.Event, c.Key.Subscription)).Scan(&r.Token, &r.Number)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return nil, err
			}
		}
		b.Results = append(b.Results, r)
	}
	call := clock()
	_, c, err := w.store.Step(ctx, dispatch.ExpandParams{}, b)
	returned := clock()
	if err != nil {
		return nil, err
	}
	for i, r := range b.Results {
		d := c.Recorded[i]
		op := leaseOp{Client: w.client, Key: r.Key, Kind: records, Token: have[i].Token, Number: have[i].Number, Call: call, Return: returned, At: c.Now.UnixNano(), Lost: d.Lost}
		if !d.Lost {
			op.Ended, op.Due = d.Decision.Status == sender.StatusDelivered, d.Decision.Due.UnixNano()
		}
		w.ops = append(w.ops, op)
	}
	for _, d := range c.Interrupted {
		w.ops = append(w.ops, leaseOp{
			Client: w.client, Key: d.Result.Key, Kind: interrupts, Token: d.Result.Token, Number: d.Result.Number, Call: call, Return: returned, At: c.Now.UnixNano(), Due: d.Decision.Due.UnixNano(),
		})
	}
	for _, d := range c.Claimed {
		w.ops = append(w.ops, leaseOp{Client: w.client, Key: d.Key, Kind: claims, Token: d.Token, Number: d.Number, Call: call, Return: returned, At: d.At.UnixNano()})
	}
	return c.Claimed, nil
}

func leaseHistory(t *testing.T, o order, p *place) []porcupine.Operation {
	t.Helper()
	k, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{1}, 32)})
	require.NoError(t, err)
	reg, err := sender.NewRegistry(p.store, k, nil)
	require.NoError(t, err)
	_, _, err = reg.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	for range 3 {
		_, err = reg.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: "https://example.com/"})
		require.NoError(t, err)
	}
	pub, err := sender.NewPublisher[*sql.Tx](p.store, nil)
	require.NoError(t, err)
	all := make([]sender.Event, events)
	if o.Defect { // so few that each is always leased, and there is a token to take
		all = all[:6]
	}
	for i := range all {
		all[i] = sender.Event{Type: "thing.made", Object: sender.Object{Type: "thing", ID: fmt.Sprint(i)}}
	}
	_, err = pub.PublishMany(t.Context(), all)
	require.NoError(t, err)
	o.Task = "leases"
	var ops []porcupine.Operation
	var lost, released int
	ended, taken := map[dispatch.DeliveryKey]bool{}, 0
	for _, op := range histories[leaseOp](t, o) {
		ops = append(ops, porcupine.Operation{ClientId: op.Client, Input: op, Call: op.Call, Return: op.Return})
		switch {
		case op.Lost:
			lost++
		case op.Ended:
			ended[op.Key] = true
		case op.Kind == claims:
			taken++
		case op.Kind == releases:
			released++
		}
	}
	t.Logf("%d operations on deliveries, %d claims, %d results too late, %d releases, %d ended", len(ops), taken, lost, released, len(ended))
	require.NotZero(t, lost, "results that came too late")
	require.NotZero(t, released)
	require.Equal(t, o.Defect, len(ended) == 0)
	return ops
}

// The histories of leases are linearizable. One process holds a delivery at a time, from
// its claim to the end of its lease. Numbers rise by one. A result counts if and only if
// its token is the present lease's. No delivery is claimed before it is due or after it
// has ended.
func TestLeases(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, o order, p *place) {
		ops := leaseHistory(t, o, p)
		require.Equal(t, porcupine.Ok, linearizable(leases, ops))

		// The model notices a violation.
		for name, change := range map[string]func(op *leaseOp) bool{
			"a late result that counts":      func(op *leaseOp) bool { was := op.Lost; op.Lost = false; return was },
			"a result in time that does not": func(op *leaseOp) bool { was := op.Kind == records && !op.Lost; op.Lost = true; return was },
			"a number that is given twice":   func(op *leaseOp) bool { op.Number--; return op.Kind == claims && op.Number > 0 },
			"a lease that ends early":        func(op *leaseOp) bool { op.At -= int64(time.Minute); return op.Kind == interrupts },
			"a claim before it is due":       func(op *leaseOp) bool { op.At -= int64(time.Minute); return op.Kind == claims && op.Number > 1 },
		} {
			changed, n := slices.Clone(ops), 0
			for i := range changed {
				if op := changed[i].Input.(leaseOp); change(&op) {
					changed[i].Input = op
					n++
				}
			}
			require.NotZero(t, n, name)
			require.Equal(t, porcupine.Illegal, linearizable(leases, changed), name)
		}
	})
}

// The test finds processes that record by the present token instead of their own.
func TestLeasesWithoutTokens(t *testing.T) {
	t.Parallel()
	foundOut(t, func(t *testing.T, o order, p *place) bool {
		return linearizable(leases, leaseHistory(t, o, p)) == porcupine.Illegal
	})
}
