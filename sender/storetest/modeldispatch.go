package storetest

import (
	"cmp"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// modelPolicy is the suite's policy, and also uses all other fields of a decision.
func modelPolicy(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
	dec := decide(l, h, r, now)
	if dec.Health.Streak >= 3 {
		dec.Health.Warned, dec.Health.WarnedAt = 50, now
		dec.Notices = append(dec.Notices, sender.Notice{Kind: sender.NoticeFailing, Percent: 50})
	}
	switch {
	case r.Class == sender.ClassConnect && !l.Single:
		dec = dispatch.Decision{Status: sender.StatusAwaitingRetry, Due: now.Add(time.Minute), Health: h, Uncounted: true, Stands: time.Minute}
	case r.Class == sender.ClassTLS && !l.Spared:
		dec = dispatch.Decision{Status: sender.StatusAwaitingRetry, Due: now.Add(time.Second), Health: h, Uncounted: true, Spared: true}
	case r.Class == sender.ClassBlocked && !l.Single:
		dec.Status, dec.Due = sender.StatusDeadLettered, time.Time{}
	case r.Class == sender.ClassReset:
		dec.Disable = "the connection broke"
		dec.Notices = append(dec.Notices, sender.Notice{Kind: sender.NoticeDisabled})
	}
	if own := l.Own; own != nil && own.Horizon > 0 && dec.Status == sender.StatusAwaitingRetry && !l.Single && now.Sub(l.First)-l.Stood >= own.Horizon {
		dec = dispatch.Decision{Status: sender.StatusDeadLettered, Health: dec.Health, Notices: dec.Notices, Disable: dec.Disable}
	}
	if dec.Status == sender.StatusDeadLettered {
		dec.Notices = append(dec.Notices, sender.Notice{Kind: sender.NoticeDeadLettered, Subscriber: sender.Operator})
	}
	if l.Notice {
		dec.Notices = nil
	}
	return dec
}

// do expands, records and claims, and compares the notices. It tells whether there is more to
// be expanded.
func (m *model) do(p dispatch.ExpandParams, results []dispatch.Result, claim dispatch.ClaimParams) (more bool) {
	drafts := map[string]sender.Draft{}
	x, claims, err := m.Store.Step(m.ctx, p, dispatch.Batch{
		Results: results, Claim: claim,
		Decide: func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
			m.given[l.Key] = l
			return modelPolicy(l, h, r, now)
		},
		Announce: func(n sender.Notice) (sender.Draft, bool) {
			if n.Kind != sender.NoticeDisabled {
				return sender.Draft{}, false
			}
			d := m.draft(string(n.Kind))
			d.Subscriber, d.Notice, d.About = n.Subscriber, true, n.Subscription
			drafts[n.ID] = d
			return d, true
		},
	})
	m.noError(err, "expanding, recording and claiming")
	m.sameTime(claims.Now, m.clock, "time of the batch")
	m.notices = nil
	if p.Events > 0 {
		m.expanded(x)
	}
	m.settled(results, claims.Recorded)
	if claim.Token != 0 {
		m.claimed(claims, claim.Token, claim.Lanes[0].Slots)
	}
	m.equal(len(claims.Notices), len(m.notices), "number of notices stored")
	m.noticed += len(claims.Notices)
	for _, got := range claims.Notices {
		i := slices.IndexFunc(m.notices, func(n sender.Notice) bool { return n.Kind == got.Kind && n.Delivery == got.Delivery })
		m.check(i >= 0, "a notice was stored that should not be: %+v", got)
		m.sameNotice(got, m.notices[i])
		m.notices = slices.Delete(m.notices, i, i+1)
		if d, ok := drafts[got.ID]; ok && slices.Contains(m.owners, d.Subscriber) {
			m.announced[got.ID] = d
			m.events = append(m.events, &modelEvent{draft: d, version: m.floor + 1, at: len(m.events), created: m.clock})
		}
	}
	if m.unswept {
		m.sweep()
		m.unswept = false
	}
	return x.More
}

// step expands, records and claims at once, as a dispatcher does.
func (m *model) step() { m.do(m.expansion(m.some(), m.some()), m.results(), m.claiming(m.some())) }

// some draws a few, or plenty.
func (m *model) some() int { return []int{1, 2, 3, plenty}[m.rand.IntN(4)] }

func (m *model) claim(slots int) { m.do(dispatch.ExpandParams{}, nil, m.claiming(slots)) }

func (m *model) claiming(slots int) dispatch.ClaimParams {
	return dispatch.ClaimParams{Lease: lease, Token: m.token(), Lanes: lanes(slots)}
}

func (m *model) claimed(claims dispatch.Claims, token int64, slots int) {
	held := map[*modelSub]bool{} // before
	for _, s := range m.subs {
		held[s] = s.held()
	}
	for _, found := range claims.Interrupted {
		d := m.byKey[found.Result.Key]
		m.check(d != nil && d.live && !d.sub.deleted && !held[d.sub] && d.lapsed(m.clock), "an attempt that is not lost was interrupted: %+v", found.Result)
		m.equal(found.Result.Number, d.number, "number of the interrupted attempt")
		disabled := d.sub.held()
		m.settle(d, sender.ClassInterrupted, found.Decision)
		m.equal(d.sub.held(), disabled, "whether a lost attempt disables")
	}
	fresh := map[*modelDelivery]bool{}
	perLane := [sender.Lanes]int{}
	for _, c := range claims.Claimed {
		d := m.byPair[pair{c.Event.ID, c.Target.Subscription}]
		m.inOrder(d)
		m.check(d != nil && d.live && !d.behind && !d.cancelled() && !held[d.sub] && d.leased.IsZero() && !fresh[d], "a delivery was claimed that may not be: %+v", c.Event)
		m.check(!d.due.After(m.clock), "a delivery was claimed that is due in %v", d.due.Sub(m.clock))
		m.equal([]int64{int64(c.Number), c.Token}, []int64{int64(d.number + 1), token}, "number and token of the attempt")
		m.sameBody(c.Body, d.event.draft, d.event.version)
		m.equal(c.Target.URL, d.sub.URL, "URL of the target")
		m.equal(c.Spared, d.spared, "Spared of attempt %d of %s", c.Number, d.id)
		m.grant(d)
		d.number, d.token = d.number+1, token
		d.tries++
		if d.first.IsZero() {
			d.first = m.clock
		}
		d.leased, d.due, d.back = m.clock, m.clock.Add(lease), false
		d.key = c.Key
		m.byKey[c.Key], fresh[d] = d, true
		m.claims = append(m.claims, c)
		perLane[c.Target.Lane]++
	}
	for lane, n := range perLane {
		m.check(n <= slots, "lane %d got %d deliveries for %d slots", lane, n, slots)
	}
	m.compareClaim(claims, slots, fresh)
}

// compareClaim checks the deliveries that were not claimed: none had room, and NextDue
// is right.
func (m *model) compareClaim(claims dispatch.Claims, slots int, fresh map[*modelDelivery]bool) {
	running := map[*modelSub]int{}
	for _, d := range m.deliveries {
		if d.live && d.inFlight(m.clock) {
			running[d.sub]++
		}
	}
	for s, n := range running {
		most := s.Settings.MaxInFlight
		m.check(most == 0 || n <= most || !m.freshOf(s, fresh), "subscription %s has %d attempts in flight, and may have %d", s.ID, n, most)
	}
	for _, d := range m.deliveries {
		full := d.sub.Settings.MaxInFlight > 0 && running[d.sub] >= d.sub.Settings.MaxInFlight
		if !d.live || d.behind || d.cancelled() || d.sub.held() || full || fresh[d] {
			continue
		}
		// With a limit a claim may look at as many waiting ones as may be attempted, and find
		// that they are not due. Then it says that there is more to be claimed at once.
		again := d.sub.Settings.MaxInFlight > 0 && !claims.NextDue.IsZero() && !claims.NextDue.After(m.clock)
		due := d.due
		if !m.grants(d.sub, -rateRounding) {
			m.saw["held up by a rate"]++
			if granted := d.sub.granted.Add(rateRounding); granted.After(due) {
				due = granted
			}
		}
		m.check(slots < plenty || due.After(m.clock) || again, "delivery %s has been due for %v and was not claimed", d.id, m.clock.Sub(due))
		late := claims.NextDue.After(due.Add(time.Microsecond)) && claims.NextDue.After(claims.Now.Add(time.Millisecond))
		m.check(!claims.NextDue.IsZero() && !late, "NextDue is %v, and %s is due at %v", claims.NextDue, d.id, due)
	}
}

// rateRounding is how far a store may be from the model's time for an attempt.
const rateRounding = time.Millisecond

// grant checks that a subscription's rate allows an attempt, and counts it. The model's rates
// are so low that they never allow two at once.
func (m *model) grant(d *modelDelivery) {
	if rate := d.sub.Settings.Rate; rate != 0 {
		m.check(m.grants(d.sub, rateRounding), "%s was claimed %v before its subscription's rate of %v a second allows it", d.id, d.sub.granted.Sub(m.clock), rate)
		d.sub.granted = m.clock.Add(interval(rate))
	}
}

// grants tells whether a subscription's rate allows an attempt, or with a slack below zero,
// whether it certainly does. A time that is too far ahead for the present rate is from before
// that was raised, and does not count.
func (m *model) grants(s *modelSub, slack time.Duration) bool {
	ahead := s.granted.Sub(m.clock)
	return s.Settings.Rate == 0 || ahead <= slack || ahead+slack > interval(s.Settings.Rate)+10*time.Second
}

func interval(rate float64) time.Duration { return time.Duration(float64(time.Second) / rate) }

// freshOf tells whether anything of a subscription was claimed just now.
func (m *model) freshOf(s *modelSub, fresh map[*modelDelivery]bool) bool {
	for d := range fresh {
		if d.sub == s {
			return true
		}
	}
	return false
}

// record records the results of a few claims.
func (m *model) record() { m.settleAll(m.results()) }

// results draws results of a few claims, many of them late.
func (m *model) results() (results []dispatch.Result) {
	for range 1 + m.rand.IntN(4) {
		if len(m.claims) == 0 {
			return nil
		}
		recent := m.claims[max(0, len(m.claims)-8):]
		class := []sender.Class{
			sender.ClassNone, sender.ClassNone, sender.ClassNone, sender.ClassTimeout, sender.ClassTimeout, sender.ClassStatus, sender.ClassStatus,
			sender.ClassConnect, sender.ClassReset, sender.ClassBlocked, sender.ClassBlocked, sender.ClassBlocked, sender.ClassTLS, sender.ClassTLS,
		}[m.rand.IntN(14)]
		results = append(results, result(recent[m.rand.IntN(len(recent))], class))
	}
	return results
}

func (m *model) settleAll(results []dispatch.Result) {
	m.do(dispatch.ExpandParams{}, results, dispatch.ClaimParams{})
}

func (m *model) settled(results []dispatch.Result, recorded []dispatch.Outcome) {
	m.equal(len(recorded), len(results), "number of Recorded")
	for i, r := range recorded {
		d := m.byKey[results[i].Key]
		lost := !d.live || d.leased.IsZero() || d.token != results[i].Token
		m.equal(r.Lost, lost, "whether result %d, of attempt %d of %s, is lost", i, results[i].Number, d.id)
		if !lost {
			m.settle(d, results[i].Class, r.Decision)
		}
	}
}

// settle changes a delivery and its subscription as an attempt of a class does, and
// compares the decision.
func (m *model) settle(d *modelDelivery, class sender.Class, got dispatch.Decision) {
	d.attempted(class)
	if d.resumed && class == sender.ClassInterrupted {
		d.first = m.clock
	}
	d.resumed = false
	if d.cancelled() {
		// The contract does not say whether such an attempt counts for the
		// health.
		if !d.sub.deleted {
			m.adopt(d, class)
		}
		if class == sender.ClassNone || d.single {
			m.end(d, sender.StatusDelivered)
		} else {
			m.end(d, sender.StatusCancelled)
		}
		m.comeOut(d)
		return
	}
	live := dispatch.Live{Key: d.key, Number: d.number, Tries: d.tries, First: d.first, Single: d.single, Stood: d.stood, Notice: d.event.draft.Notice, Spared: d.spared}
	if set := d.sub.Settings; set.Order == sender.OrderObject {
		live.HoldTries, live.HoldFor = set.HoldTries, set.HoldFor
	}
	if set := d.sub.Settings; set.HasPolicy() {
		live.Own = &set
	}
	live.GoneStops = d.sub.Settings.Gone == sender.GoneStops && d.sub.Status != sender.SubscriptionClosing
	given := m.given[d.key]
	if d.vague {
		live.First = given.First
	}
	m.sameTime(given.First, live.First, "First at attempt %d of %s", d.number, d.id)
	given.First = live.First
	m.equal(given, live, "row that Decide was given at attempt %d of %s", d.number, d.id)
	want := modelPolicy(live, d.sub.Health, dispatch.Result{Class: class}, m.clock)
	if want.Status == sender.StatusAwaitingRetry && m.overtaken(d) {
		m.saw["overtaken in flight"]++
		want.Status = d.superseded()
	}
	if want.Status == sender.StatusDeadLettered && live.Own != nil && live.Tries < maxTries && class != sender.ClassBlocked {
		m.saw["given up by a horizon of its own"]++
	}
	m.equal(got.Status, want.Status, "decision on attempt %d of %s", d.number, d.id)
	m.sameTime(got.Due, want.Due, "Due of the decision on attempt %d of %s", d.number, d.id)
	d.sub.Health = want.Health
	if want.Status == sender.StatusAwaitingRetry {
		d.status, d.due, d.leased = want.Status, want.Due, time.Time{}
		d.stood += want.Stands
		d.spared = want.Spared
		if want.Uncounted {
			d.tries--
			d.uncounted = true
		}
		if d.behind = m.yields(d); d.behind {
			m.saw["yields"]++
		}
	} else {
		m.end(d, want.Status)
	}
	m.comeOut(d)
	m.affect(d, want, "")
}

// affect disables a subscription, and notes which notices the store must have, except
// one kind.
func (m *model) affect(d *modelDelivery, dec dispatch.Decision, but sender.NoticeKind) {
	active := d.sub.Status == sender.SubscriptionActive
	if dec.Disable != "" && active {
		d.sub.Status, d.sub.DisabledAt, d.sub.DisabledReason = sender.SubscriptionDisabled, m.clock, dec.Disable
	}
	for _, n := range dec.Notices {
		if n.Kind == but || n.Kind == sender.NoticeDisabled && !active || n.Kind == sender.NoticeFailing && d.sub.Status == sender.SubscriptionClosing {
			continue
		}
		n.Subscriber = cmp.Or(n.Subscriber, d.sub.Subscriber)
		n.Subscription, n.Delivery, n.CreatedAt = d.sub.ID, d.id, m.clock
		m.notices = append(m.notices, n)
	}
}

// adopt takes over the store's health of a subscription when the attempt of a skipped
// delivery ends: the store may keep the health or store the decision's.
func (m *model) adopt(d *modelDelivery, class sender.Class) {
	live, asked := m.given[d.key]
	if !asked || live.Number != d.number {
		return
	}
	dec := modelPolicy(live, d.sub.Health, dispatch.Result{Class: class}, m.clock)
	d.sub.Health = dec.Health
	m.affect(d, dec, sender.NoticeDeadLettered)
}

func (m *model) release() {
	if len(m.claims) == 0 {
		return
	}
	recent := m.claims[max(0, len(m.claims)-8):]
	c := recent[m.rand.IntN(len(recent))]
	r := dispatch.Release{Key: c.Key, Token: c.Token}
	due := m.clock
	if m.rand.IntN(2) == 0 {
		due = m.clock.Add(10 * time.Minute)
		r.Due = due
	}
	m.noError(m.Store.Release(m.ctx, []dispatch.Release{r}), "releasing")
	if d := m.byKey[c.Key]; d.live && !d.leased.IsZero() && d.token == c.Token {
		d.number--
		d.tries--
		d.resumed = false
		if d.back = d.number == 0 && r.Due.IsZero(); d.back {
			due = d.event.created
		}
		if !r.Due.IsZero() && !d.first.IsZero() && (d.tries > 0 || d.vague || !d.first.Equal(d.leased)) {
			d.stood += r.Due.Sub(d.leased)
		}
		d.leased, d.due = time.Time{}, due
		if d.tries == 0 {
			d.vague = d.vague || d.uncounted
			d.first = time.Time{}
		}
		switch {
		case d.cancelled(): // the store may end it at once
			m.cancel(d)
		case m.overtaken(d):
			m.end(d, d.superseded())
		default:
			d.behind = m.yields(d)
		}
		m.comeOut(d)
	}
}

func (m *model) redeliver() {
	if len(m.deliveries) == 0 {
		return
	}
	d := m.deliveries[m.rand.IntN(len(m.deliveries))]
	if d.live && d.dropped && d.single {
		return // the contract does not say whether it can be
	}
	err := m.Store.Redeliver(m.ctx, d.id, time.Time{})
	switch {
	case d.reads() == sender.StatusCancelled:
		m.errorIs(err, sender.ErrCancelled, "redelivering a cancelled delivery")
		return
	case d.sub.deleted:
		m.check(err != nil, "a %s delivery of a deleted subscription was redelivered", d.status)
		return
	case d.event.redacted:
		m.errorIs(err, sender.ErrRedacted, "redelivering a redacted delivery")
		return
	}
	m.noError(err, "redelivering %s", d.id)
	if d.live {
		d.renew(m.clock)
	} else {
		m.sendAgain(d)
	}
}

// sendAgain makes a delivery live that has ended.
func (m *model) sendAgain(d *modelDelivery) {
	d.single = d.status == sender.StatusDelivered
	d.status, d.live, d.stops, d.lined = sender.StatusAwaitingRetry, true, false, false
	if len(d.attempts) == 0 { // it was superseded
		d.status = sender.StatusPending
	}
	d.renew(m.clock)
	m.enter(d)
}
