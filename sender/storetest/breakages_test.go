package storetest_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/surehook/surehook/sender"
)

// breakage is a way to break a store, with the tests that must catch it.
type breakage struct {
	caughtBy []string
	how      func(b *broken, h *harness)
}

var breakages = map[string]breakage{
	"token ignored": {[]string{"record/token", "record/too late", "random/seed 1"}, func(b *broken, _ *harness) {
		present := map[sender.DeliveryKey]int64{}
		b.batch = func(ctx context.Context, batch sender.Batch) (sender.Claims, error) {
			batch.Results = slices.Clone(batch.Results)
			for i, r := range batch.Results {
				batch.Results[i].Token = present[r.Key]
			}
			c, err := b.Store.RecordAndClaim(ctx, batch)
			for _, d := range c.Claimed {
				present[d.Key] = d.Token
			}
			return c, err
		}
	}},
	"a NUL reaches the database": {[]string{"registry/no text"}, func(b *broken, _ *harness) {
		b.replay = func(ctx context.Context, id string) (sender.Replay, error) {
			if strings.ContainsRune(id, 0) {
				return sender.Replay{}, errors.New("invalid byte sequence for encoding \"UTF8\": 0x00 (SQLSTATE 22021)")
			}
			return b.Store.Replay(ctx, id)
		}
	}},
	"a notice goes to whom it tells of": {[]string{"notice/announced, and whom it tells of"}, onDrafts(func(d *sender.Draft) { d.About = "" })},
	"lease ignored":                     {[]string{"claim/lease"}, onClaim(func(p *sender.ClaimParams) { p.Lease = 0 })},
	"lease too short": {[]string{"claim/lease", "random/seed 1"}, onClaim(func(p *sender.ClaimParams) {
		p.Lease -= 2 * time.Second
	})},
	"everything made twice": {[]string{"expand/in chunks", "expand/by several at a time"}, func(b *broken, _ *harness) {
		b.publishTx = func(ctx context.Context, tx tx, drafts []sender.Draft) ([]sender.Ref, error) {
			refs, err := b.Store.PublishTx(ctx, tx, drafts)
			if err == nil {
				_, err = b.Store.PublishTx(ctx, tx, copies(drafts))
			}
			return refs, err
		}
	}},
	"chunks not bounded": {[]string{"expand/in chunks"}, func(b *broken, _ *harness) {
		b.expand = func(ctx context.Context, p sender.ExpandParams) (sender.Expanded, error) {
			return b.Store.Expand(ctx, sender.ExpandParams{Events: p.Events, Deliveries: 1 << 30})
		}
	}},
	"expansions not told of": {[]string{"expand/in a step"}, func(b *broken, _ *harness) {
		b.expand = func(ctx context.Context, p sender.ExpandParams) (sender.Expanded, error) {
			_, err := b.Store.Expand(ctx, p)
			return sender.Expanded{}, err
		}
	}},
	"More forgotten": {[]string{"expand/in chunks"}, func(b *broken, _ *harness) {
		b.expand = func(ctx context.Context, p sender.ExpandParams) (sender.Expanded, error) {
			x, err := b.Store.Expand(ctx, p)
			x.More = false
			return x, err
		}
	}},
	"older events for new subscriptions": {[]string{"matching/nothing older than the subscription", "random/seed 1"}, func(b *broken, _ *harness) {
		var all []sender.Draft
		b.publishTx = func(ctx context.Context, tx tx, drafts []sender.Draft) ([]sender.Ref, error) {
			all = append(all, drafts...)
			return b.Store.PublishTx(ctx, tx, drafts)
		}
		b.createTx = func(ctx context.Context, tx tx, s sender.Subscription) error {
			if err := b.Store.CreateSubscriptionTx(ctx, tx, s); err != nil {
				return err
			}
			again := copies(all)
			for i := range again {
				again[i].Subscriber, again[i].Subscription = s.Subscriber, s.ID
			}
			_, err := b.Store.PublishTx(ctx, tx, again)
			return err
		}
	}},
	"filter ignored": {[]string{"matching/as Matches says"}, func(b *broken, _ *harness) {
		b.createTx = func(ctx context.Context, tx tx, s sender.Subscription) error {
			s.EventTypes = []string{"*"}
			return b.Store.CreateSubscriptionTx(ctx, tx, s)
		}
	}},
	"addressee ignored": {[]string{"matching/as Matches says"}, onDrafts(func(d *sender.Draft) { d.Subscriber, d.Subscription = "", "" })},
	"roll-back of InTx leaks": {[]string{"publish/rolled back leaves nothing", "registry/rolled back", "transaction/runs again", "life/hold, rolled back", "life/resume, rolled back", "life/close, rolled back", "random/seed 1"}, func(b *broken, _ *harness) {
		b.inTx = func(ctx context.Context, fn func(tx) error) error {
			var failed error
			if err := b.Store.InTx(ctx, func(tx tx) error { failed = fn(tx); return nil }); err != nil {
				return err
			}
			return failed
		}
	}},
	"roll-back of the caller leaks": {[]string{"publish/rolled back leaves nothing"}, func(_ *broken, h *harness) {
		begin := h.Begin
		h.Begin = func(t *testing.T) (tx, func() error, func() error) {
			tx, commit, _ := begin(t)
			return tx, commit, commit
		}
	}},
	"no second run": {[]string{"transaction/runs again"}, func(b *broken, _ *harness) {
		b.inTx = func(ctx context.Context, fn func(tx) error) error {
			return b.Store.InTx(ctx, func(tx tx) error {
				err := fn(tx)
				if errors.Is(err, sender.ErrRetryTx) {
					return errors.New("not retried")
				}
				return err
			})
		}
	}},
	"version does not rise": {[]string{"publish/versions rise by one", "publish/versions of concurrent publishers"}, func(b *broken, _ *harness) {
		b.publishTx = func(ctx context.Context, tx tx, drafts []sender.Draft) ([]sender.Ref, error) {
			refs, err := b.Store.PublishTx(ctx, tx, drafts)
			for i := range refs {
				refs[i].Version = 1
			}
			return refs, err
		}
	}},
	"old version taken": {[]string{"publish/versions given", "publish/refused version leaves no trace"}, func(b *broken, _ *harness) {
		b.publishTx = func(ctx context.Context, tx tx, drafts []sender.Draft) ([]sender.Ref, error) {
			refs, err := b.Store.PublishTx(ctx, tx, drafts)
			if errors.Is(err, sender.ErrVersion) {
				for i := range drafts {
					drafts[i].Version = 0
				}
				return b.Store.PublishTx(ctx, tx, drafts)
			}
			return refs, err
		}
	}},
	"refused version keeps its key": {[]string{"publish/refused version takes no key"}, func(b *broken, _ *harness) {
		b.publishTx = func(ctx context.Context, tx tx, drafts []sender.Draft) ([]sender.Ref, error) {
			refs, err := b.Store.PublishTx(ctx, tx, drafts)
			if errors.Is(err, sender.ErrVersion) && drafts[0].Key != "" {
				taken := drafts[0]
				taken.Object.ID, taken.Version = "another", 0
				if _, err := b.Store.PublishTx(ctx, tx, []sender.Draft{taken}); err != nil {
					return nil, err
				}
			}
			return refs, err
		}
	}},
	"key ignored":           {[]string{"publish/key makes a duplicate", "publish/key with another content"}, onDrafts(func(d *sender.Draft) { d.Key = "" })},
	"key's content ignored": {[]string{"publish/key with another content"}, onDrafts(func(d *sender.Draft) { d.KeyHash = [32]byte{} })},
	"key's scope ignored":   {[]string{"publish/key belongs to its scope"}, onDrafts(func(d *sender.Draft) { d.KeyScope = "" })},
	"body altered": {[]string{"publish/body keeps its bytes"}, func(b *broken, _ *harness) {
		b.batch = func(ctx context.Context, batch sender.Batch) (sender.Claims, error) {
			c, err := b.Store.RecordAndClaim(ctx, batch)
			for i := range c.Claimed {
				c.Claimed[i].Body = bytes.ToValidUTF8(c.Claimed[i].Body, []byte("?"))
			}
			return c, err
		}
	}},
	"body altered in the history": {[]string{"publish/body keeps its bytes"}, onDelivery(func(d *sender.Delivery) { d.Body = bytes.TrimSpace(d.Body) })},
	"due ignored":                 {[]string{"claim/nothing before it is due", "record/failure", "random/seed 1"}, onDue(func(due, now time.Time) time.Time { return now })},
	"head not lowered on a retry": {[]string{"claim/NextDue", "claim/nothing before it is due", "random/seed 1"}, onDue(func(due, now time.Time) time.Time { return due.Add(time.Hour) })},
	"health dropped": {[]string{"record/health within a batch", "fairness/lanes"}, onDecide(func(decide decideFunc) decideFunc {
		return func(l sender.Live, h sender.Health, r sender.Result, now time.Time) sender.Decision {
			dec := decide(l, h, r, now)
			dec.Health = h
			return dec
		}
	})},
	"health not handed on within a batch": {[]string{"record/health within a batch"}, onDecide(func(decide decideFunc) decideFunc {
		first := map[int64]sender.Health{}
		return func(l sender.Live, h sender.Health, r sender.Result, now time.Time) sender.Decision {
			if _, ok := first[l.Key.Subscription]; !ok {
				first[l.Key.Subscription] = h
			}
			return decide(l, first[l.Key.Subscription], r, now)
		}
	})},
	"single treated as ordinary": {[]string{"redeliver/delivered, again", "redeliver/delivered, whose single attempt fails"}, onDecide(func(decide decideFunc) decideFunc {
		return func(l sender.Live, h sender.Health, r sender.Result, now time.Time) sender.Decision {
			l.Single = false
			return decide(l, h, r, now)
		}
	})},
	"single until it is lost": {[]string{"redeliver/delivered, whose single attempt is lost"}, func(b *broken, h *harness) {
		lost := map[sender.DeliveryKey]bool{}
		onDecide(func(decide decideFunc) decideFunc {
			return func(l sender.Live, h sender.Health, r sender.Result, now time.Time) sender.Decision {
				lost[l.Key] = lost[l.Key] || r.Class == sender.ClassInterrupted
				l.Single = l.Single && (!lost[l.Key] || r.Class == sender.ClassInterrupted)
				return decide(l, h, r, now)
			}
		})(b, h)
	}},
	"a lost single attempt is not made up for": {[]string{"redeliver/delivered, whose single attempt is lost"}, onDecide(func(decide decideFunc) decideFunc {
		return func(l sender.Live, h sender.Health, r sender.Result, now time.Time) sender.Decision {
			if l.Single && r.Class == sender.ClassInterrupted {
				return sender.Decision{Status: sender.StatusDelivered, Health: h}
			}
			return decide(l, h, r, now)
		}
	})},
	"schedule not started anew": {[]string{"redeliver/awaiting retry", "redeliver/in flight", "redeliver/dead-lettered", "life/resume, all", "random/seed 1"}, onDecide(func(decide decideFunc) decideFunc {
		return func(l sender.Live, h sender.Health, r sender.Result, now time.Time) sender.Decision {
			l.Tries = l.Number
			return decide(l, h, r, now)
		}
	})},
	"snippet dropped": {[]string{"record/attempts in full"}, onDelivery(func(d *sender.Delivery) {
		for i := range d.Attempts {
			d.Attempts[i].Snippet = nil
		}
	})},
	"interrupted attempts not stored": {[]string{"claim/lost attempt", "random/seed 1"}, onDelivery(func(d *sender.Delivery) {
		d.Attempts = slices.DeleteFunc(d.Attempts, func(a sender.Attempt) bool { return a.Class == sender.ClassInterrupted })
		d.AttemptCount = len(d.Attempts)
	})},
	"the number is the token": {[]string{"record/a number given twice"}, func(b *broken, _ *harness) {
		type numbered struct {
			sender.DeliveryKey
			number int64
		}
		tokens, numbers := map[numbered]int64{}, map[int64]int64{}
		b.batch = func(ctx context.Context, batch sender.Batch) (sender.Claims, error) {
			batch.Results = slices.Clone(batch.Results)
			for i, r := range batch.Results {
				batch.Results[i].Token = tokens[numbered{r.Key, numbers[r.Token]}]
			}
			c, err := b.Store.RecordAndClaim(ctx, batch)
			for _, d := range c.Claimed {
				tokens[numbered{d.Key, int64(d.Number)}], numbers[d.Token] = d.Token, int64(d.Number)
			}
			return c, err
		}
	}},
	"release repeated by its number": {[]string{"record/a number given twice"}, func(b *broken, _ *harness) {
		present := map[sender.DeliveryKey]sender.Claimed{}
		numbers := map[int64]int{}
		b.batch = func(ctx context.Context, batch sender.Batch) (sender.Claims, error) {
			c, err := b.Store.RecordAndClaim(ctx, batch)
			for _, d := range c.Claimed {
				present[d.Key], numbers[d.Token] = d, d.Number
			}
			return c, err
		}
		b.release = func(ctx context.Context, rs []sender.Release) error {
			rs = slices.Clone(rs)
			for i, r := range rs {
				if p := present[r.Key]; p.Number == numbers[r.Token] {
					rs[i].Token = p.Token
				}
			}
			return b.Store.Release(ctx, rs)
		}
	}},
	"release uses up the number": {[]string{"record/released"}, func(b *broken, _ *harness) {
		b.release = func(ctx context.Context, rs []sender.Release) error {
			var results []sender.Result
			for _, r := range rs {
				results = append(results, sender.Result{Key: r.Key, Token: r.Token, Number: 1, Class: sender.ClassInterrupted})
			}
			_, err := b.Store.RecordAndClaim(ctx, sender.Batch{Results: results, Decide: func(_ sender.Live, h sender.Health, _ sender.Result, now time.Time) sender.Decision {
				return sender.Decision{Status: sender.StatusAwaitingRetry, Due: now, Health: h}
			}})
			return err
		}
	}},
	"released at once, always": {[]string{"record/released", "redeliver/pending"}, func(b *broken, _ *harness) {
		b.release = func(ctx context.Context, rs []sender.Release) error {
			for i := range rs {
				rs[i].Due = time.Time{}
			}
			return b.Store.Release(ctx, rs)
		}
	}},
	"slots exceeded": {[]string{"fairness/slots"}, onClaim(func(p *sender.ClaimParams) {
		for i := range p.Lanes {
			if p.Lanes[i].Slots > 0 {
				p.Lanes[i].Slots++
				p.Lanes[i].PerSubscriber++
				p.Lanes[i].PerSubscription++
			}
		}
	})},
	"bound of a subscriber ignored":   {[]string{"fairness/bounds of each"}, onClaim(func(p *sender.ClaimParams) { p.Lanes[sender.LaneNew].PerSubscriber = 1000 })},
	"bound of a subscription ignored": {[]string{"fairness/bounds of each"}, onClaim(func(p *sender.ClaimParams) { p.Lanes[sender.LaneNew].PerSubscription = 1000 })},
	"room of subscriptions ignored":   {[]string{"fairness/room of each"}, onClaim(func(p *sender.ClaimParams) { p.SubscriptionRoom = nil })},
	"room of subscribers ignored":     {[]string{"fairness/room of each"}, onClaim(func(p *sender.ClaimParams) { p.Lanes[sender.LaneNew].SubscriberRoom = nil })},
	"lanes ignored": {[]string{"fairness/lanes"}, onClaim(func(p *sender.ClaimParams) {
		for i := range p.Lanes {
			p.Lanes[i] = slices.MaxFunc(p.Lanes[:], func(a, b sender.LaneParams) int { return cmp.Compare(a.Slots, b.Slots) })
		}
	})},
	"first come, first served": {[]string{"fairness/a backlog delays nobody", "fairness/shares of subscribers", "fairness/turns"}, func(b *broken, _ *harness) {
		b.batch = func(ctx context.Context, batch sender.Batch) (sender.Claims, error) {
			slots := batch.Claim.Lanes[sender.LaneNew].Slots
			if slots > 0 {
				batch.Claim.Lanes[sender.LaneNew] = sender.LaneParams{Slots: 1 << 20, PerSubscriber: 1 << 20, PerSubscription: 1 << 20}
			}
			c, err := b.Store.RecordAndClaim(ctx, batch)
			slices.SortFunc(c.Claimed, func(x, y sender.Claimed) int { return cmp.Compare(x.Key.Event, y.Key.Event) })
			var back []sender.Release
			for _, d := range c.Claimed[min(slots, len(c.Claimed)):] {
				back = append(back, sender.Release{Key: d.Key, Token: d.Token})
			}
			c.Claimed = c.Claimed[:min(slots, len(c.Claimed))]
			return c, errors.Join(err, b.Store.Release(ctx, back))
		}
	}},
	"NextDue forgotten": {[]string{"claim/NextDue", "random/seed 1"}, func(b *broken, _ *harness) {
		b.batch = func(ctx context.Context, batch sender.Batch) (sender.Claims, error) {
			c, err := b.Store.RecordAndClaim(ctx, batch)
			c.NextDue = time.Time{}
			return c, err
		}
	}},
	"cancelled is redelivered": {[]string{"redeliver/cancelled", "random/seed 1"}, func(b *broken, _ *harness) {
		b.redeliver = func(ctx context.Context, id string, notBefore time.Time) error {
			err := b.Store.Redeliver(ctx, id, notBefore)
			if errors.Is(err, sender.ErrCancelled) {
				return nil
			}
			return err
		}
	}},
	"second attempt while one is in flight": {[]string{"redeliver/in flight"}, func(b *broken, _ *harness) {
		var claimed []sender.Claimed
		b.batch = func(ctx context.Context, batch sender.Batch) (sender.Claims, error) {
			c, err := b.Store.RecordAndClaim(ctx, batch)
			claimed = append(claimed, c.Claimed...)
			return c, err
		}
		b.redeliver = func(ctx context.Context, id string, notBefore time.Time) error {
			d, err := b.Store.Delivery(ctx, id)
			if err != nil {
				return err
			}
			var back []sender.Release
			for _, c := range claimed {
				if c.Event.ID == d.Event.ID && c.Target.Subscription == d.Subscription {
					back = append(back, sender.Release{Key: c.Key, Token: c.Token})
				}
			}
			return errors.Join(b.Store.Release(ctx, back), b.Store.Redeliver(ctx, id, notBefore))
		}
	}},
	"a replay's set not fixed": {[]string{"replay/set of dead letters", "replay/set of delivered ones"}, func(b *broken, _ *harness) {
		// The replay is created anew when it is stepped.
		created := map[string]sender.Replay{}
		b.createReplay = func(ctx context.Context, r sender.Replay, notBefore time.Time) (sender.Replay, error) {
			made, err := b.Store.CreateReplay(ctx, r, notBefore)
			created[made.ID] = r
			return made, err
		}
		b.stepReplays = func(ctx context.Context, limit int, announce announceFunc) (sender.ReplayStep, error) {
			for id, r := range created {
				_, _ = b.Store.SetReplayStatus(ctx, id, sender.ReplayCancelled)
				_, _ = b.Store.CreateReplay(ctx, r, time.Time{})
				delete(created, id)
			}
			return b.Store.StepReplays(ctx, limit, announce)
		}
	}},
	"a member admitted twice": {[]string{"replay/in steps", "replay/dead letters"}, onStep(func(step stepFunc, limit int, announce announceFunc) (sender.ReplayStep, error) {
		s, err := step(limit, announce)
		s.Admitted += s.Admitted
		return s, err
	})},
	"a step's limit ignored": {[]string{"replay/in steps", "replay/turns"}, onStep(func(step stepFunc, _ int, announce announceFunc) (sender.ReplayStep, error) {
		return step(1000, announce)
	})},
	"More of a step forgotten": {[]string{"replay/dead letters", "replay/in steps"}, onStep(func(step stepFunc, limit int, announce announceFunc) (sender.ReplayStep, error) {
		s, err := step(limit, announce)
		s.More = false
		return s, err
	})},
	"Next of a step forgotten": {[]string{"replay/rate", "replay/ahead"}, onStep(func(step stepFunc, limit int, announce announceFunc) (sender.ReplayStep, error) {
		s, err := step(limit, announce)
		s.Next = time.Time{}
		return s, err
	})},
	"a replay's end not announced": {[]string{"replay/finished"}, onStep(func(step stepFunc, limit int, _ announceFunc) (sender.ReplayStep, error) {
		return step(limit, nil)
	})},
	"a replay goes before fresh work": {[]string{"replay/below fresh work"}, func(b *broken, _ *harness) {
		b.stepReplays = func(ctx context.Context, limit int, announce announceFunc) (sender.ReplayStep, error) {
			s, err := b.Store.StepReplays(ctx, limit, announce)
			if s.Admitted > 0 { // a redelivery has lost its rank
				page, _, _ := b.Store.Deliveries(ctx, sender.DeliveryQuery{Status: sender.StatusAwaitingRetry, Limit: 200})
				for _, d := range page {
					err = errors.Join(err, b.Store.Redeliver(ctx, d.ID, time.Time{}))
				}
			}
			return s, err
		}
	}},
	"a replay's rate ignored":   {[]string{"replay/rate"}, onReplay(func(r *sender.Replay, _ *time.Time) { r.Rate *= 100 })},
	"a replay's filter ignored": {[]string{"replay/filter"}, onReplay(func(r *sender.Replay, _ *time.Time) { r.Filter = sender.ReplayFilter{Status: r.Filter.Status} })},
	"a replay's class ignored":  {[]string{"replay/filter"}, onReplay(func(r *sender.Replay, _ *time.Time) { r.Filter.ErrorClass = "" })},
	"a replay's until included": {[]string{"replay/filter"}, onReplay(func(r *sender.Replay, _ *time.Time) {
		if !r.Filter.Until.IsZero() {
			r.Filter.Until = r.Filter.Until.Add(time.Microsecond)
		}
	})},
	"a replay beyond the retention": {[]string{"replay/beyond the retention"}, onReplay(func(_ *sender.Replay, notBefore *time.Time) { *notBefore = time.Time{} })},
	"a redelivery beyond the retention": {[]string{"replay/redelivery beyond the retention"}, func(b *broken, _ *harness) {
		b.redeliver = func(ctx context.Context, id string, _ time.Time) error {
			return b.Store.Redeliver(ctx, id, time.Time{})
		}
	}},
	"a pause of a replay ignored": {[]string{"replay/paused, continued, cancelled"}, func(b *broken, _ *harness) {
		b.setReplayStatus = func(ctx context.Context, id string, to sender.ReplayStatus) (sender.Replay, error) {
			r, err := b.Store.SetReplayStatus(ctx, id, to)
			if to == sender.ReplayPaused {
				_, _ = b.Store.SetReplayStatus(ctx, id, sender.ReplayRunning)
			}
			return r, err
		}
	}},
	"a cancelled replay goes on": {[]string{"replay/paused, continued, cancelled"}, func(b *broken, _ *harness) {
		b.setReplayStatus = func(ctx context.Context, id string, to sender.ReplayStatus) (sender.Replay, error) {
			if to == sender.ReplayCancelled {
				return b.Store.Replay(ctx, id)
			}
			return b.Store.SetReplayStatus(ctx, id, to)
		}
	}},
	"deletion ignored": {[]string{"cancel/live ones are cancelled", "registry/subscription"}, func(b *broken, _ *harness) {
		b.deleteTx = func(context.Context, tx, string) error { return nil }
	}},
	"deletion ends attempts in flight": {[]string{"cancel/in flight and succeeds"}, func(b *broken, _ *harness) {
		subscription, deleted := map[sender.DeliveryKey]string{}, map[string]bool{}
		b.deleteTx = func(ctx context.Context, tx tx, id string) error {
			deleted[id] = true
			return b.Store.DeleteSubscriptionTx(ctx, tx, id)
		}
		b.batch = func(ctx context.Context, batch sender.Batch) (sender.Claims, error) {
			batch.Results = slices.Clone(batch.Results)
			for i, r := range batch.Results {
				if deleted[subscription[r.Key]] {
					batch.Results[i].Token = 0
				}
			}
			c, err := b.Store.RecordAndClaim(ctx, batch)
			for _, d := range c.Claimed {
				subscription[d.Key] = d.Target.Subscription
			}
			return c, err
		}
	}},
	"list loses a row at a page boundary": {[]string{"history/pages"}, onPage(func(q sender.DeliveryQuery, page []sender.Delivery) []sender.Delivery {
		if q.Cursor != "" && len(page) > 0 {
			return page[1:]
		}
		return page
	})},
	"list repeats a row at a page boundary": {[]string{"history/pages"}, func(b *broken, h *harness) {
		last := map[sender.Status]sender.Delivery{}
		onPage(func(q sender.DeliveryQuery, page []sender.Delivery) []sender.Delivery {
			if q.Cursor != "" {
				page = append([]sender.Delivery{last[q.Status]}, page...)
			}
			if len(page) > 0 {
				last[q.Status] = page[len(page)-1]
			}
			return page
		})(b, h)
	}},
	"status ignored in lists": {[]string{"history/by status"}, func(b *broken, _ *harness) {
		b.deliveries = func(ctx context.Context, q sender.DeliveryQuery) ([]sender.Delivery, string, error) {
			q.Status = ""
			return b.Store.Deliveries(ctx, q)
		}
	}},
	"malformed cursor taken for none": {[]string{"history/malformed cursor"}, func(b *broken, _ *harness) {
		b.deliveries = func(ctx context.Context, q sender.DeliveryQuery) ([]sender.Delivery, string, error) {
			page, next, err := b.Store.Deliveries(ctx, q)
			if errors.Is(err, sender.ErrInvalid) {
				q.Cursor = ""
				return b.Store.Deliveries(ctx, q)
			}
			return page, next, err
		}
	}},
	"wake-ups overlooked": {[]string{"claim/every wake-up is seen"}, func(b *broken, _ *harness) {
		var taken atomic.Bool
		b.expand = func(ctx context.Context, p sender.ExpandParams) (sender.Expanded, error) {
			x, err := b.Store.Expand(ctx, p)
			if x.Deliveries > 0 && !taken.Load() { // as if somebody had claimed meanwhile
				var c sender.Claims
				c, err = b.Store.RecordAndClaim(ctx, sender.Batch{Claim: sender.ClaimParams{
					Lease: time.Minute, Lanes: [sender.Lanes]sender.LaneParams{{Slots: 1, PerSubscriber: 1, PerSubscription: 1}},
				}})
				if len(c.Claimed) > 0 { // others may have claimed all of it
					taken.Store(true)
				}
			}
			return x, err
		}
	}},
	"late results dropped": {[]string{"record/late, but not lost"}, func(b *broken, _ *harness) {
		at := map[sender.DeliveryKey]time.Time{}
		b.batch = func(ctx context.Context, batch sender.Batch) (sender.Claims, error) {
			now, err := b.Store.RecordAndClaim(ctx, sender.Batch{})
			batch.Results = slices.Clone(batch.Results)
			for i, r := range batch.Results {
				if now.Now.Sub(at[r.Key]) > time.Minute {
					batch.Results[i].Token = 0
				}
			}
			c, err2 := b.Store.RecordAndClaim(ctx, batch)
			for _, d := range c.Claimed {
				at[d.Key] = d.At
			}
			return c, errors.Join(err, err2)
		}
	}},
	"oldest first": {[]string{"history/list"}, onPage(func(_ sender.DeliveryQuery, page []sender.Delivery) []sender.Delivery {
		slices.Reverse(page)
		return page
	})},
	"version dropped": {[]string{"history/a delivery in full"}, onDelivery(func(d *sender.Delivery) { d.Version = 0 })},
	"ids compared loosely": {[]string{"history/unknown", "redeliver/unknown"}, func(b *broken, _ *harness) {
		b.delivery = func(ctx context.Context, id string) (sender.Delivery, error) {
			return b.Store.Delivery(ctx, strings.TrimSpace(id))
		}
		b.redeliver = func(ctx context.Context, id string, notBefore time.Time) error {
			return b.Store.Redeliver(ctx, strings.TrimSpace(id), notBefore)
		}
	}},
	"object ids normalised": {[]string{"publish/odd object ids"}, onDrafts(func(d *sender.Draft) { d.Object.ID = strings.ToLower(d.Object.ID) })},
	"subscriber replaced": {[]string{"registry/subscriber"}, func(b *broken, _ *harness) {
		b.newSubscriberTx = func(ctx context.Context, tx tx, s sender.Subscriber, secrets []sender.SealedSecret) error {
			if err := b.Store.CreateSubscriberTx(ctx, tx, s, secrets); !errors.Is(err, sender.ErrExists) {
				return err
			}
			return nil
		}
	}},
	"deletion cancels what had ended": {[]string{"cancel/ended ones stay"}, func(b *broken, h *harness) {
		deleted := map[string]bool{}
		b.deleteTx = func(ctx context.Context, tx tx, id string) error {
			deleted[id] = true
			return b.Store.DeleteSubscriptionTx(ctx, tx, id)
		}
		onPage(func(_ sender.DeliveryQuery, page []sender.Delivery) []sender.Delivery {
			for i := range page {
				if deleted[page[i].Subscription] {
					page[i].Status = sender.StatusCancelled
				}
			}
			return page
		})(b, h)
	}},
	"never commits": {[]string{"transaction/commits"}, func(b *broken, _ *harness) {
		b.inTx = func(ctx context.Context, fn func(tx) error) error {
			rollback := errors.New("roll back")
			err := b.Store.InTx(ctx, func(tx tx) error { return cmp.Or(fn(tx), rollback) })
			if errors.Is(err, rollback) {
				return nil
			}
			return err
		}
	}},
	"commits on a panic": {[]string{"transaction/rolls back on a panic"}, func(b *broken, _ *harness) {
		b.inTx = func(ctx context.Context, fn func(tx) error) error {
			var panicked any
			err := b.Store.InTx(ctx, func(tx tx) error {
				defer func() { panicked = recover() }()
				return fn(tx)
			})
			if panicked != nil {
				panic(panicked)
			}
			return err
		}
	}},
	"busy transactions try again later": {[]string{"transaction/takes turns"}, func(b *broken, _ *harness) {
		var busy sync.Mutex
		b.inTx = func(ctx context.Context, fn func(tx) error) error {
			for !busy.TryLock() {
				time.Sleep(50 * time.Microsecond)
			}
			defer busy.Unlock()
			return b.Store.InTx(ctx, fn)
		}
	}},
	"fails its own check": {[]string{"transaction/check"}, func(b *broken, _ *harness) {
		b.check = func(context.Context) error { return sender.ErrUnfit }
	}},
	"no signal": {[]string{"transaction/signals"}, func(b *broken, _ *harness) {
		b.woken = func() <-chan struct{} { return nil }
	}},
	"version of secrets not looked at": {[]string{"secrets/changed in between", "secrets/by several at a time"}, func(b *broken, _ *harness) {
		b.setSecretsTx = func(ctx context.Context, tx tx, subscriber string, version int64, secrets []sender.SealedSecret) error {
			k, err := b.Store.SubscriberKeyringTx(ctx, tx, subscriber)
			if err != nil {
				return err
			}
			return b.Store.SetSecretsTx(ctx, tx, subscriber, k.Version, secrets)
		}
	}},
	"claims name the keyring's version of before": {[]string{"secrets/replaced"}, func(b *broken, _ *harness) {
		b.batch = func(ctx context.Context, batch sender.Batch) (sender.Claims, error) {
			c, err := b.Store.RecordAndClaim(ctx, batch)
			for i := range c.Claimed {
				c.Claimed[i].Target.KeyringVersion = 1
			}
			return c, err
		}
	}},
	"secrets in another order": {[]string{"secrets/replaced"}, func(b *broken, _ *harness) {
		b.setSecretsTx = func(ctx context.Context, tx tx, subscriber string, version int64, secrets []sender.SealedSecret) error {
			secrets = slices.Clone(secrets)
			slices.SortFunc(secrets, func(x, y sender.SealedSecret) int { return strings.Compare(x.ID, y.ID) })
			return b.Store.SetSecretsTx(ctx, tx, subscriber, version, secrets)
		}
	}},
	"sealed anew whatever is there": {[]string{"secrets/sealed anew"}, func(b *broken, _ *harness) {
		b.rewrapTx = func(ctx context.Context, tx tx, subscriber string, _ []byte, sealed sender.SealedSecret) (bool, error) {
			k, _ := b.Store.SubscriberKeyringTx(ctx, tx, subscriber)
			for _, s := range k.Secrets {
				if s.ID == sealed.ID {
					return b.Store.RewrapTx(ctx, tx, subscriber, s.Sealed, sealed)
				}
			}
			return false, nil
		}
	}},
	"sealing anew is a change": {[]string{"secrets/sealed anew"}, func(b *broken, _ *harness) {
		b.rewrapTx = func(ctx context.Context, tx tx, subscriber string, old []byte, sealed sender.SealedSecret) (bool, error) {
			done, err := b.Store.RewrapTx(ctx, tx, subscriber, old, sealed)
			if k, _ := b.Store.SubscriberKeyringTx(ctx, tx, subscriber); done {
				err = errors.Join(err, b.Store.SetSecretsTx(ctx, tx, subscriber, k.Version, k.Secrets))
			}
			return done, err
		}
	}},
	"sealing key of what is sealed anew forgotten": {[]string{"secrets/sealing keys", "secrets/by sealing key", "secrets/sealed anew"}, func(b *broken, _ *harness) {
		b.rewrapTx = func(ctx context.Context, tx tx, subscriber string, old []byte, sealed sender.SealedSecret) (bool, error) {
			k, _ := b.Store.SubscriberKeyringTx(ctx, tx, subscriber)
			for _, s := range k.Secrets {
				if s.ID == sealed.ID {
					sealed.Key = s.Key
				}
			}
			return b.Store.RewrapTx(ctx, tx, subscriber, old, sealed)
		}
	}},
	"unknown sealing key left out": {[]string{"secrets/sealing keys"}, func(b *broken, _ *harness) {
		b.sealingKeys = func(ctx context.Context) ([]string, error) {
			keys, err := b.Store.SealingKeys(ctx)
			return slices.DeleteFunc(keys, func(key string) bool { return key == "" }), err
		}
	}},
	"sealing keys compared loosely": {[]string{"secrets/by sealing key"}, func(b *broken, _ *harness) {
		b.keyringsTx = func(ctx context.Context, tx tx, key, after string, limit int) ([]sender.SealedKeyring, error) {
			list, err := b.Store.KeyringsTx(ctx, tx, key, after, limit)
			if len(list) == 0 && err == nil {
				return b.Store.KeyringsTx(ctx, tx, strings.ToLower(key), after, limit)
			}
			return list, err
		}
	}},
	"keyrings listed in part": {[]string{"secrets/by sealing key"}, func(b *broken, _ *harness) {
		b.keyringsTx = func(ctx context.Context, tx tx, key, after string, limit int) ([]sender.SealedKeyring, error) {
			list, err := b.Store.KeyringsTx(ctx, tx, key, after, limit)
			for i := range list {
				list[i].Secrets = slices.DeleteFunc(list[i].Secrets, func(s sender.SealedSecret) bool { return s.Key != key })
			}
			return list, err
		}
	}},
}
