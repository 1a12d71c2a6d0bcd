package simulation_test

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/surehook/surehook/internal/proof/simulation"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/storetest"
)

// breakage makes a store, or a policy, break an invariant.
type breakage struct {
	name, breaks string
	begin        uint64                                      // a seed that finds it, where the first ones do not
	batch        func(b *dispatch.Batch)                     // before it is handed to the store
	claims       func(b *dispatch.Batch, c *dispatch.Claims) // after that
	decide       func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time, decide decideFunc) dispatch.Decision
	expand       func(p *dispatch.ExpandParams)
	settings     func(s *sender.Settings)        // that subscriptions get
	kept         bool                            // their order stays as it began
	passes       bool                            // over what is too old
	numbered     bool                            // a token is the attempt's number, and a release is repeated
	commits      bool                            // an event of a transaction that should roll back
	order        func(sender.Order) sender.Order // that subscriptions get
	redelivers   sender.Status                   // what nobody has asked for
	silent       bool                            // only claims store beats
	greedy       bool                            // the leases of other processes are taken over, too
}

type decideFunc = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision

// without is a subscription's own policy without something.
func without(own *sender.Settings, what func(*sender.Settings)) *sender.Settings {
	if own == nil {
		return nil
	}
	s := *own
	what(&s)
	return &s
}

var breakages = []breakage{
	{name: "a timeout counts as success", breaks: "I1", decide: func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time, decide decideFunc) dispatch.Decision {
		if r.Class == sender.ClassTimeout {
			return dispatch.Decision{Status: sender.StatusDelivered, Health: h}
		}
		return decide(l, h, r, now)
	}},
	{name: "a failure is final", breaks: "I1", begin: 19, decide: func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time, decide decideFunc) dispatch.Decision {
		d := decide(l, h, r, now)
		if r.StatusCode == 410 {
			d.Status = sender.StatusDeadLettered
		}
		return d
	}},
	{name: "the horizon is forgotten", breaks: "I1", begin: 6, decide: func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time, decide decideFunc) dispatch.Decision {
		l.First = now
		return decide(l, h, r, now)
	}},
	{name: "a horizon of one's own is forgotten", breaks: "I1", begin: 10, decide: func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time, decide decideFunc) dispatch.Decision {
		l.Own = without(l.Own, func(s *sender.Settings) { s.Horizon = 0 })
		return decide(l, h, r, now)
	}},
	{name: "a schedule of one's own is forgotten", breaks: "I8", decide: func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time, decide decideFunc) dispatch.Decision {
		l.Own = without(l.Own, func(s *sender.Settings) { s.RetryDelays = nil })
		return decide(l, h, r, now)
	}},
	{name: "410 stops nobody", breaks: "I1", begin: 19, decide: func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time, decide decideFunc) dispatch.Decision {
		l.GoneStops = false
		return decide(l, h, r, now)
	}},
	{name: "a redelivery ends with an attempt that was lost", breaks: "I1", begin: 97, decide: func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time, decide decideFunc) dispatch.Decision {
		if l.Single && r.Class == sender.ClassInterrupted {
			return dispatch.Decision{Status: sender.StatusDelivered, Health: h}
		}
		return decide(l, h, r, now)
	}},
	{name: "Retry-After is ignored", breaks: "I8", begin: 8, decide: func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time, decide decideFunc) dispatch.Decision {
		r.RetryAfter = 0
		return decide(l, h, r, now)
	}},
	{name: "a retry does not wait", breaks: "I8", decide: func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time, decide decideFunc) dispatch.Decision {
		d := decide(l, h, r, now)
		d.Due = now
		return d
	}},
	{name: "a closed idle connection counts", breaks: "I8", decide: func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time, decide decideFunc) dispatch.Decision {
		r.ClosedIdle = false
		return decide(l, h, r, now)
	}},
	{name: "a closed idle connection tells of the endpoint", breaks: "I8", decide: func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time, decide decideFunc) dispatch.Decision {
		d := decide(l, h, r, now)
		if d.Spared {
			d.Health.Streak++
		}
		return d
	}},
	{name: "what is spared does not wait", breaks: "I8", decide: func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time, decide decideFunc) dispatch.Decision {
		d := decide(l, h, r, now)
		if d.Spared {
			d.Due = now
		}
		return d
	}},
	{name: "two in a row are spared", breaks: "I8", begin: 11, decide: func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time, decide decideFunc) dispatch.Decision {
		l.Spared = false
		return decide(l, h, r, now)
	}},
	{name: "what is claimed is not told that it was spared", breaks: "I8", claims: func(_ *dispatch.Batch, c *dispatch.Claims) {
		for i := range c.Claimed {
			c.Claimed[i].Spared = false
		}
	}},
	{name: "an attempt is posted under the number before", breaks: "I7", claims: func(_ *dispatch.Batch, c *dispatch.Claims) {
		for i := range c.Claimed {
			c.Claimed[i].Number = max(1, c.Claimed[i].Number-1)
		}
	}},
	{name: "the body changes with the attempts", breaks: "I4", claims: func(_ *dispatch.Batch, c *dispatch.Claims) {
		for i := range c.Claimed {
			if x := &c.Claimed[i]; x.Number > 1 {
				x.Body = append(x.Body, ' ')
			}
		}
	}},
	{name: "the database's time is not taken", breaks: "I4", claims: func(_ *dispatch.Batch, c *dispatch.Claims) {
		for i := range c.Claimed {
			c.Claimed[i].At = c.Claimed[i].At.Add(-time.Hour)
		}
	}},
	{name: "a result is taken whose lease was lost", breaks: "I5", claims: func(_ *dispatch.Batch, c *dispatch.Claims) {
		for i := range c.Recorded {
			c.Recorded[i].Lost = false
		}
	}},
	{name: "each event is about an object of its own", breaks: "I14", claims: func(_ *dispatch.Batch, c *dispatch.Claims) {
		for i := range c.Claimed {
			c.Claimed[i].Event.Object.ID = c.Claimed[i].Event.ID
		}
	}},
	{name: "every claim is nobody's", breaks: "I14", batch: func(b *dispatch.Batch) { b.Claim.By = dispatch.Presence{} }},
	{name: "leases end early", breaks: "I5", batch: func(b *dispatch.Batch) { b.Claim.Lease /= 10 }},
	{name: "a number that was given back is the token again", breaks: "I5", numbered: true},
	{name: "who lives is taken over", breaks: "I5", begin: 4, silent: true},
	{name: "what others hold is taken over", breaks: "I5", begin: 4, greedy: true},
	{name: "what is rolled back is committed", breaks: "I2", begin: 3, commits: true},
	{name: "the order of a subscription is not stored", breaks: "I15", order: func(sender.Order) sender.Order { return sender.OrderRelaxed }},
	{name: "the latest order is not stored", breaks: "I16", order: func(o sender.Order) sender.Order {
		if o == sender.OrderLatest {
			return sender.OrderRelaxed
		}
		return o
	}},
	{name: "the latest order is that of objects", breaks: "I16", order: func(o sender.Order) sender.Order {
		if o == sender.OrderLatest {
			return sender.OrderObject
		}
		return o
	}},
	{name: "the order of objects is the latest", breaks: "I16", order: func(o sender.Order) sender.Order {
		if o == sender.OrderObject {
			return sender.OrderLatest
		}
		return o
	}},
	{name: "an order that is changed stays", breaks: "I15", begin: 30, kept: true},
	{name: "an order that is changed stays, and is not the latest", breaks: "I16", begin: 3, kept: true},
	{name: "a dead letter holds back nothing", breaks: "I15", begin: 10, settings: func(s *sender.Settings) { s.HoldDead = false }},
	{name: "what is too old is passed over", breaks: "I10", begin: 10, passes: true},
	{name: "filters are asked about what was published", breaks: "I1", begin: 5, expand: func(p *dispatch.ExpandParams) {
		p.Convert = func(_, from, _ string, data json.RawMessage) (string, json.RawMessage, error) { return from, data, nil }
	}},
	{name: "filters are not asked where an older version is needed", breaks: "I1", begin: 5, expand: func(p *dispatch.ExpandParams) { p.Convert = nil }},
	{name: "what was delivered is sent again", breaks: "I6", redelivers: sender.StatusDelivered},
	{name: "what was superseded is sent again", breaks: "I16", redelivers: sender.StatusSuperseded},
}

// broken is a database in memory with a breakage.
type broken struct {
	simulation.Database[*memory.Tx]
	how    breakage
	tokens map[numbered]int64 // of the leases
}

type numbered struct {
	dispatch.DeliveryKey
	number int64
}

func breaking(b breakage) simulation.Database[*memory.Tx] {
	return broken{simulation.Memory(), b, map[numbered]int64{}}
}

func (b broken) Open(ctx context.Context, now, local func() time.Time) (storetest.Store[*memory.Tx], error) {
	s, err := b.Database.Open(ctx, now, local)
	return &brokenStore{Store: s, how: b.how, tokens: b.tokens}, err
}

type brokenStore struct {
	storetest.Store[*memory.Tx]
	how      breakage
	tokens   map[numbered]int64
	released []dispatch.Release
}

func (s *brokenStore) Step(ctx context.Context, p dispatch.ExpandParams, b dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	if s.how.batch != nil {
		s.how.batch(&b)
	}
	if own := b.Decide; s.how.decide != nil && own != nil {
		b.Decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
			return s.how.decide(l, h, r, now, own)
		}
	}
	if s.how.numbered {
		b.Results = slices.Clone(b.Results)
		for i, r := range b.Results {
			b.Results[i].Token = s.tokens[numbered{r.Key, r.Token}]
		}
	}
	if s.how.expand != nil {
		s.how.expand(&p)
	}
	x, c, err := s.Store.Step(ctx, p, b)
	if s.how.numbered {
		for i, cl := range c.Claimed {
			c.Claimed[i].Token = int64(cl.Number)
			s.tokens[numbered{cl.Key, int64(cl.Number)}] = cl.Token
		}
	}
	if s.how.claims != nil {
		s.how.claims(&b, &c)
	}
	if len(s.released) > 0 { // as if its answer had been lost
		_ = s.Store.Release(ctx, s.present(s.released))
		s.released = nil
	}
	return x, c, err
}

func (s *brokenStore) CreateSubscriptionTx(ctx context.Context, tx *memory.Tx, n sender.Subscription) error {
	if s.how.order != nil {
		n.Settings.Order = s.how.order(n.Settings.Order)
	}
	if s.how.settings != nil {
		s.how.settings(&n.Settings)
	}
	return s.Store.CreateSubscriptionTx(ctx, tx, n)
}

func (s *brokenStore) UpdateSubscriptionTx(ctx context.Context, tx *memory.Tx, n sender.Subscription) error {
	if s.how.kept {
		was, err := s.SubscriptionTx(ctx, tx, sender.SubscriptionKey{ID: n.ID})
		if err != nil {
			return err
		}
		n.Settings.Order, n.Settings.HoldFor, n.Settings.HoldDead = was.Settings.Order, was.Settings.HoldFor, was.Settings.HoldDead
	}
	if s.how.settings != nil {
		s.how.settings(&n.Settings)
	}
	return s.Store.UpdateSubscriptionTx(ctx, tx, n)
}

func (s *brokenStore) PassOver(ctx context.Context, id string, notBefore time.Time) error {
	if s.how.passes {
		notBefore = time.Time{}
	}
	return s.Store.PassOver(ctx, id, notBefore)
}

func (s *brokenStore) Beat(ctx context.Context, p dispatch.Presence) ([]dispatch.Presence, error) {
	if s.how.silent {
		return s.Present(ctx)
	}
	return s.Store.Beat(ctx, p)
}

func (s *brokenStore) TakeOver(ctx context.Context, p dispatch.Presence) (int, error) {
	n, err := s.Store.TakeOver(ctx, p)
	if s.how.greedy && err == nil && n > 0 {
		known, err := s.Present(ctx)
		if err != nil {
			return n, err
		}
		for _, other := range known {
			also, err := s.Store.TakeOver(ctx, other)
			if n += also; err != nil {
				return n, err
			}
		}
	}
	return n, err
}

func (s *brokenStore) InTx(ctx context.Context, fn func(*memory.Tx) error) error {
	if !s.how.commits {
		return s.Store.InTx(ctx, fn)
	}
	var own error
	if err := s.Store.InTx(ctx, func(tx *memory.Tx) error {
		own = fn(tx)
		return nil
	}); err != nil {
		return err
	}
	return own
}

func (s *brokenStore) Sweep(ctx context.Context, p dispatch.SweepParams) (dispatch.Swept, error) {
	if s.how.redelivers != "" {
		ended, _, err := s.Deliveries(ctx, history.DeliveryQuery{Status: s.how.redelivers, Limit: 1})
		if err != nil {
			return dispatch.Swept{}, err
		}
		for _, d := range ended {
			if err := s.Redeliver(ctx, d.ID, time.Time{}); err != nil {
				return dispatch.Swept{}, err
			}
		}
	}
	return s.Store.Sweep(ctx, p)
}

func (s *brokenStore) Release(ctx context.Context, rs []dispatch.Release) error {
	if s.how.numbered {
		s.released, rs = rs, s.present(rs)
	}
	return s.Store.Release(ctx, rs)
}

// present returns the releases under the tokens that now stand for their numbers.
func (s *brokenStore) present(rs []dispatch.Release) []dispatch.Release {
	rs = slices.Clone(rs)
	for i, r := range rs {
		rs[i].Token = s.tokens[numbered{r.Key, r.Token}]
	}
	return rs
}
