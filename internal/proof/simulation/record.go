package simulation

import (
	"errors"
	"fmt"
	"time"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

// records are the simulation's own records.
type records struct {
	events     []*event
	eventByID  map[string]*event
	undone     map[string]bool // ids of events that were rolled back
	subByID    map[string]*subscription
	deliveries []*delivery
	byKey      map[dispatch.DeliveryKey]*delivery
	notices    int
}

func newRecords() records {
	return records{eventByID: map[string]*event{}, undone: map[string]bool{}, subByID: map[string]*subscription{}, byKey: map[dispatch.DeliveryKey]*delivery{}}
}

// event is a committed event.
type event struct {
	name    string
	id      string
	kind    string
	object  dedup.Object
	version int64
	part    int
	to      *owner // nil: for all
	only    *subscription
	body    []byte    // as it was posted first
	at      time.Time // of its commit
	created time.Time // as the database has it
	notice  bool

	deliveries map[string][]string // their ids, by subscription, as they were read
}

// delivery is the simulation's record of a delivery.
type delivery struct {
	w     *world
	name  string
	id    string
	event *event
	sub   *subscription
	body  []byte // as it was posted

	status    sender.Status // as it was read last
	live      bool
	gone      bool          // it was forgotten
	passed    bool          // others go on although it is a dead letter
	lastAt    time.Time     // when it was claimed last
	attemptAt time.Time     // the same, without claims that were given back
	posts     map[int]*post // by the attempt's number

	// I1
	firstMost, firstLeast time.Time // between which its present schedule began
	stood                 time.Duration
	mayCancel             bool // a resume has skipped it
	delivered             bool // it was, once
	// I5
	leased     *lease
	taken      []sender.Attempt // those that were recorded, by number, class and status
	succeeded  bool             // since it was cancelled
	replayable bool             // I6: a replay may take it
	redeliver  bool             // I6: somebody has asked for it
	single     bool             // I6: and it was delivered before
	// I8
	due       time.Time     // as was stored
	notBefore time.Time     // as its endpoint has asked
	spared    bool          // the last attempt of its schedule was
	health    sender.Health // of its subscription, before the last decision
}

// lease is a claim's lease.
type lease struct {
	token  int64
	number int
	until  time.Time
	by     *process
	life   int
	owner  int64     // the number of that process
	over   bool      // it was taken over
	last   time.Time // attemptAt of the delivery before it
}

func (l *lease) String() string {
	if l == nil {
		return "it is not leased"
	}
	return fmt.Sprintf("its attempt %d is leased to process %d under the token %d", l.number, l.by.no, l.token)
}

// post is one POST.
type post struct {
	d          *delivery
	number     int
	token      int64 // of its claim
	at         time.Time
	timeout    time.Duration
	acked      bool          // with 2xx, in whole
	retryAfter time.Duration // that was asked for,
	answeredAt time.Time     // at this time
	closedIdle bool          // its connection was closed as it was sent
}

func (p *post) answered(a answer, at time.Time) {
	if a.status >= 200 && a.status < 300 && !a.broken {
		p.acked = true
	}
	p.retryAfter, p.answeredAt = a.retryAfter, at
}

func (d *delivery) say(format string, args ...any) {
	d.w.say("%s "+format, append([]any{d.name}, args...)...)
}

// eventName is the simulation's own name of an event.
func (w *world) eventName(id string) string {
	if e := w.eventByID[id]; e != nil {
		return e.name
	}
	return "an event that is not known"
}

// deliveryOf finds the record of a delivery. It makes the record when the store first
// returns the delivery.
func (w *world) deliveryOf(key dispatch.DeliveryKey, info sender.EventInfo, subscription string) *delivery {
	if d := w.byKey[key]; d != nil {
		return d
	}
	e := w.eventByID[info.ID]
	if e == nil {
		if !info.Notice {
			w.violated("I2", "there is a delivery of an event that nobody has published: it was rolled back: %v", w.undone[info.ID])
		}
		e = &event{name: fmt.Sprint("n", w.notices), id: info.ID, kind: info.Type, object: dedup.Object(info.Object), at: info.CreatedAt, created: info.CreatedAt, notice: true}
		w.notices++
		w.eventByID[e.id] = e
	}
	s := w.subByID[subscription]
	d := &delivery{w: w, name: e.name + "→" + s.name, event: e, sub: s, status: sender.StatusPending, live: true, posts: map[int]*post{}}
	w.checkAsked(d)
	if e.deliveries[s.id] == nil { // of all its subscriptions at once, as far as they are there
		page, _, err := w.history.Deliveries(w.ctx, history.DeliveryQuery{Event: e.id})
		w.fail(err)
		e.deliveries = map[string][]string{}
		for i := range page {
			e.deliveries[page[i].Subscription] = append(e.deliveries[page[i].Subscription], page[i].ID)
		}
	}
	w.byKey[key] = d
	if ids := e.deliveries[s.id]; len(ids) != 1 { // or the run is being broken off
		w.violated("I1", "%s is there %d times", d.name, len(ids))
		return d
	}
	d.id = e.deliveries[s.id][0]
	d.mayCancel = w.skipped(e, s)
	w.deliveries = append(w.deliveries, d)
	return d
}

// expanded notes the events that a call of the store has expanded.
func (p *process) expanded(x dispatch.Expanded) {
	if x.Events+x.Deliveries > 0 {
		p.w.say("process %d expands %d events, %d deliveries", p.no, x.Events, x.Deliveries)
	}
	if x.Events > 0 && x.More { // a call has room for all small events
		p.w.counts["beside a large event"]++
	}
}

// exchanged notes the effects of a batch, in the store's order.
func (p *process) exchanged(b *dispatch.Batch, c *dispatch.Claims) {
	w := p.w
	touched := make([]*delivery, 0, len(b.Results)+len(c.Claimed))
	for i := range b.Results {
		r, rec := &b.Results[i], &c.Recorded[i]
		d := w.byKey[r.Key]
		d.say("%d is recorded by process %d: %q %d, lost: %v, %s", r.Number, p.no, r.Class, r.StatusCode, rec.Lost, rec.Decision.Status)
		w.recorded(d, r, rec)
		touched = append(touched, d)
	}
	for i := range c.Interrupted {
		rec := &c.Interrupted[i]
		d := w.deliveryOf(rec.Result.Key, rec.Event, rec.Target.Subscription)
		d.say("%d is found lost by process %d: %s", rec.Result.Number, p.no, rec.Decision.Status)
		w.interrupted(d, rec)
		touched = append(touched, d)
	}
	for i := range c.Claimed {
		x := &c.Claimed[i]
		d := w.deliveryOf(x.Key, x.Event, x.Target.Subscription)
		d.say("%d is claimed by process %d", x.Number, p.no)
		w.claimed(p, d, x, b.Claim.Lease, b.Claim.By.Process)
		touched = append(touched, d)
	}
	for _, d := range touched {
		w.look(d)
	}
	for i := range c.Claimed {
		w.checkLine(w.byKey[c.Claimed[i].Key])
		w.checkLatest(w.byKey[c.Claimed[i].Key])
	}
}

// recorded notes that a result was handed to the store.
func (w *world) recorded(d *delivery, r *dispatch.Result, rec *dispatch.Outcome) {
	w.checkFence(d, r.Token, rec.Lost)
	if rec.Lost {
		w.counts["result lost"]++
		return
	}
	d.took(r.Number, r.Class, r.StatusCode)
	w.checkDecision(d, r, &rec.Decision)
	w.checkSpared(d, r, &rec.Decision)
	if r.OwnNetwork {
		w.counts["own network"]++
	}
	w.keepWaiting(d, r, &rec.Decision)
	w.checkOwnDelay(d, r, &rec.Decision)
	w.checkGone(d, r, &rec.Decision)
	w.holdIf(d.sub, &rec.Decision)
}

// interrupted notes that the store has found an attempt lost.
func (w *world) interrupted(d *delivery, rec *dispatch.Recorded) {
	w.checkLeaseEnded(d)
	w.counts["interrupted"]++
	d.took(rec.Result.Number, sender.ClassInterrupted, 0)
	w.checkDecision(d, &rec.Result, &rec.Decision)
	w.checkSpared(d, &rec.Result, &rec.Decision)
	w.holdIf(d.sub, &rec.Decision)
}

// took ends the lease with a result.
func (d *delivery) took(number int, class sender.Class, status int) {
	d.leased = nil
	d.taken = append(d.taken, sender.Attempt{Number: number, Class: class, StatusCode: status})
	d.succeeded = d.succeeded || class == sender.ClassNone
}

// holdIf notes that a decision has disabled a subscription. Its owner must have been
// warned before.
func (w *world) holdIf(s *subscription, dec *dispatch.Decision) {
	for _, n := range dec.Notices {
		if n.Kind == sender.NoticeFailing && n.Percent == 90 {
			s.warnedAt = w.now.Truncate(time.Microsecond) // as databases keep it
		}
	}
	chance := s.disableAfter() / 10
	if dec.Disable != "" && dec.Disable != sender.DisabledByGone && (s.warnedAt.IsZero() || w.now.Sub(s.warnedAt) < chance || !s.warnedAt.Equal(dec.Health.WarnedAt.Truncate(time.Microsecond))) {
		w.violated("I1", "%s is disabled, and its owner was warned at %v, not %v before", s.name, s.warnedAt, chance)
	}
	if dec.Disable != "" && s.status == sender.SubscriptionActive {
		w.say("%s is disabled: %s", s.name, dec.Disable)
		w.counts[map[bool]string{true: "disabled by 410", false: "disabled by failing"}[dec.Disable == sender.DisabledByGone]]++
		s.status = sender.SubscriptionDisabled
	}
}

// claimed notes that a delivery was claimed.
func (w *world) claimed(p *process, d *delivery, c *dispatch.Claimed, term time.Duration, owner int64) {
	w.checkClaim(d, c)
	w.checkNeverSuperseded(d)
	w.checkDue(d, "claimed")
	w.checkToldSpared(d, c)
	if d.firstMost.IsZero() {
		d.firstMost, d.firstLeast = c.At, minTime(d.firstLeast, c.At)
	}
	d.leased = &lease{token: c.Token, number: c.Number, until: c.At.Add(term), by: p, life: p.life, owner: owner, last: d.attemptAt}
	d.lastAt, d.attemptAt = c.At, c.At
}

// minTime returns the earlier of two times. a may be zero.
func minTime(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// tookOver notes that a number of leases of a process were ended.
func (p *process) tookOver(of dispatch.Presence, n int) {
	w := p.w
	if n == 0 {
		return
	}
	w.counts["taken over"]++
	for _, d := range w.deliveries {
		if l := d.leased; l != nil && l.owner == of.Process && l.until.After(w.now) {
			d.say("%d is taken over by process %d from %d", l.number, p.no, l.by.no)
			if at := l.by.said[l.owner]; l.by.life == l.life && w.now.Sub(at) < 4*time.Second {
				w.violated("I5", "process %d is taken over at %v, and has said at %v that it lives", l.by.no, w.now.Sub(begins), at.Sub(begins))
			}
			l.until, l.over = w.now, true
			n--
		}
	}
	if n != 0 {
		w.violated("I5", "a process was taken over, and with it %d leases of others", n)
	}
}

// released notes that deliveries were given back.
func (p *process) released(rs []dispatch.Release) {
	for _, r := range rs {
		d := p.w.byKey[r.Key]
		d.say("is given back by process %d", p.no)
		if d.leased != nil && d.leased.token == r.Token {
			d.attemptAt = d.leased.last // as if it had not been claimed
			d.leased = nil
			d.firstMost = time.Time{} // the schedule may begin with the next claim
		}
	}
	for _, r := range rs { // a delivery may be there twice, under tokens of two claims
		p.w.look(p.w.byKey[r.Key])
	}
}

// swept looks for attempts of cancelled deliveries that have not ended by themselves:
// the sweep has found them lost.
func (w *world) swept() {
	for _, d := range w.deliveries {
		if l := d.leased; l != nil && d.mayCancel && !l.until.After(w.now) {
			got, err := w.history.Delivery(w.ctx, d.id)
			w.fail(err)
			if err == nil && terminal(got.Status) && len(got.Attempts) > len(d.taken) {
				d.say("%d is swept away", l.number)
				d.took(l.number, sender.ClassInterrupted, 0)
			}
			w.look(d)
		}
	}
}

// look reads a delivery, and compares it with its record.
func (w *world) look(d *delivery) {
	if w.broken != nil || d.gone {
		return
	}
	got, err := w.history.Delivery(w.ctx, d.id)
	switch {
	case errors.Is(err, sender.ErrNotFound):
		w.forgotten(d)
		return
	case err != nil:
		w.fail(err)
		return
	}
	w.checkNumbers(d, &got)
	w.checkPosts(d)
	w.checkStatus(d, &got)
	w.checkTerminal(d, got.Status)
	w.checkSuperseded(d, got.Status)
	before := d.status
	d.status = got.Status
	if live := !terminal(got.Status); live != d.live {
		d.passed = d.passed && !live
		d.live, d.single = live, live && before == sender.StatusDelivered
		if !live {
			d.firstMost, d.firstLeast, d.stood, d.succeeded = time.Time{}, time.Time{}, 0, false
			d.due, d.notBefore, d.spared = time.Time{}, time.Time{}, false
		}
	}
	if len(d.taken) > 0 && d.leased == nil && d.live {
		d.due = got.NextAttemptAt
	}
}

func terminal(s sender.Status) bool {
	return s == sender.StatusDelivered || s == sender.StatusDeadLettered || s == sender.StatusCancelled || s == sender.StatusSuperseded
}

// lookAround looks at a random delivery.
func (w *world) lookAround() {
	if len(w.deliveries) > 0 {
		w.look(w.deliveries[w.rand.IntN(len(w.deliveries))])
	}
}
