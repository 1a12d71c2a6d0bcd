package surehook_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/backoff"
	dedup "github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/sqlite"
	"github.com/surehook/surehook/signing"
)

// A year in the life of a few subscriptions, in virtual time: their owners pause,
// resume, change, close and delete them, rotate their secrets, have outages of days;
// the operator disables, redelivers, replays and prunes. Every invariant is checked
// after every step, against what was seen on the wire and against a model of the
// rules. A failing seed fails again.
func TestYear(t *testing.T) {
	ends := yearBegins.AddDate(1, 0, 0)
	if raceEnabled { // it makes SQLite many times slower
		ends = yearBegins.AddDate(0, 3, 0)
	}
	seeds := []uint64{1, 2}
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("memory/seed %d", seed), func(t *testing.T) {
			t.Parallel()
			clock := &yearClock{yearBegins}
			store, err := memory.New(&memory.Config{Now: clock.Now})
			require.NoError(t, err)
			runYear(t, store, clock, ends, seed)
		})
	}
	t.Run("sqlite/seed 4", func(t *testing.T) {
		t.Parallel()
		db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "year.db")+
			"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(5000)")
		require.NoError(t, err)
		defer db.Close()
		clock := &yearClock{yearBegins}
		store, err := sqlite.New(db, &sqlite.Config{Now: clock.Now})
		require.NoError(t, err)
		require.NoError(t, store.Migrate(t.Context()))
		runYear(t, store, clock, ends, 4)
	})
}

var yearBegins = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// The policy's own figures, and those that the model is checked by.
const (
	yearDisableAfter  = 120 * time.Hour
	yearDisableStreak = 5
	yearSilence       = 24 * time.Hour
	yearReach         = 28 * 24 * time.Hour
	yearSubscribers   = 4
	yearSubscriptions = 8
)

// yearClock is moved by the test alone.
type yearClock struct{ now time.Time }

func (c *yearClock) Now() time.Time { return c.now }

// year is the service, its subscribers, and what is known of them.
type year[Tx any] struct {
	t     *testing.T
	rand  *rand.Rand
	clock *yearClock

	store   sender.Store[Tx]
	reg     *sender.Registry[Tx]
	pub     *sender.Publisher[Tx]
	history *sender.History
	replays *sender.Replays
	keys    *sender.Keys
	sealing []sender.SealingKey
	disp    *sender.Dispatcher

	owners     []*yearOwner
	subs       []*yearSub
	hosts      map[string]*yearSub
	events     []*yearEvent
	byKey      map[yearKey]*yearDelivery
	deliveries []*yearDelivery
	undone     map[string]bool
	wire       sync.Mutex
	made       int
	versions   map[string]int64
	trace      []string
	counts     map[string]int
	running    []string // replays
	finished   int
}

type yearOwner struct {
	id      string
	deleted bool
	// known are the secrets with which the owner verifies: the newest last.
	known []signing.Secret
	valid []yearSecret // at the sender
}

type yearSecret struct {
	secret signing.Secret
	until  time.Time // zero: it is the newest
}

type yearSub struct {
	owner   *yearOwner
	id      string
	status  sender.SubscriptionStatus // as it should be; "" once it is deleted
	outage  string                    // "": up
	markers *dedup.Store
	rcv     http.Handler
	applied map[string]int   // by event
	version map[string]int64 // by object
	acked   map[string]bool  // events that it has answered with 2xx
	bodies  map[string][]byte

	// What disables it.
	failingSince, lastFailure time.Time
	streak                    int
	due                       bool // to be disabled
	autoDisabled              int
}

type yearEvent struct {
	id, object string
	version    int64
	at         time.Time
	audience   []*yearSub
	expanded   bool
}

type yearKey struct{ event, subscription string }

type yearDelivery struct {
	yearKey
	id      string
	sub     *yearSub
	status  sender.Status
	posts   int
	seen    int       // how many of them when it was looked at last
	hurried time.Time // when it was last redelivered, replayed or resumed
	early   []int     // numbers of attempts that may be made before they were due, for that
	pruned  bool
	notice  bool
}

func runYear[Tx any](t *testing.T, store sender.Store[Tx], clock *yearClock, ends time.Time, seed uint64) {
	y := &year[Tx]{
		t: t, rand: rand.New(rand.NewPCG(seed, 1)), clock: clock, store: store,
		hosts: map[string]*yearSub{}, byKey: map[yearKey]*yearDelivery{}, undone: map[string]bool{},
		versions: map[string]int64{}, counts: map[string]int{},
		sealing: []sender.SealingKey{{ID: "k0", Key: bytes.Repeat([]byte{1}, 32)}},
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last steps before %v: %s", clock.now, strings.Join(y.trace[max(0, len(y.trace)-25):], "; "))
		}
	})
	y.open()
	for range 2 {
		y.createSubscriber()
	}
	for range 3 {
		y.subscribe()
	}
	steps := y.steps()
	var deck []int
	for i, s := range steps {
		for range s.weight {
			deck = append(deck, i)
		}
	}
	for clock.now.Before(ends) {
		step := steps[deck[y.rand.IntN(len(deck))]]
		y.say("%s", step.name)
		step.run()
		y.publishSome()
		y.advance()
		y.dispatch()
		y.check()
	}
	y.finish()
	t.Logf("%d events, %d deliveries, %v", len(y.events), len(y.deliveries), y.counts)
}

func (y *year[Tx]) open() {
	var err error
	newest := len(y.sealing) - 1
	y.keys, err = sender.NewKeys(y.sealing[newest], y.sealing[:newest]...)
	require.NoError(y.t, err)
	y.reg, err = sender.NewRegistry(y.store, y.keys, &sender.RegistryConfig{Now: y.clock.Now, Network: sender.Network{AllowPrivateNetworks: true}})
	require.NoError(y.t, err)
	y.pub, err = sender.NewPublisher[Tx](y.store, &sender.PublisherConfig{Now: y.clock.Now})
	require.NoError(y.t, err)
	y.history, err = sender.NewHistory(y.store, &sender.HistoryConfig{Now: y.clock.Now})
	require.NoError(y.t, err)
	y.replays, err = sender.NewReplays(y.store, &sender.ReplaysConfig{Now: y.clock.Now})
	require.NoError(y.t, err)
	y.disp, err = sender.NewDispatcher(y.store, y.keys, &sender.DispatcherConfig{
		UnguardedTransport: yearWire(y.post),
		Logger:             slog.New(slog.DiscardHandler),
		Chance:             y.chance(),
		Policy:             sender.Policy{Backoff: backoff.Reference(), DisableAfter: yearDisableAfter},
	})
	require.NoError(y.t, err)
}

// chance is used by many goroutines at once, so it has no part in what happens.
func (y *year[Tx]) chance() func() float64 { return func() float64 { return 0.5 } }

func (y *year[Tx]) say(format string, args ...any) {
	y.trace = append(y.trace, fmt.Sprintf(format, args...))
}

func (y *year[Tx]) ctx() context.Context { return y.t.Context() }

type yearStep struct {
	name   string
	weight int
	run    func()
}

func (y *year[Tx]) steps() []yearStep {
	return []yearStep{
		{"nothing", 10, func() {}},
		{"create a subscriber", 1, y.createSubscriber},
		{"delete a subscriber", 1, y.deleteSubscriber},
		{"subscribe", 3, y.subscribe},
		{"unsubscribe", 1, y.unsubscribe},
		{"close", 1, y.close},
		{"change the URL", 2, y.move},
		{"pause", 3, y.pause},
		{"resume", 5, y.resume},
		{"disable", 1, y.disable},
		{"outage", 4, y.outage},
		{"recover", 6, y.recover},
		{"rotate", 3, y.rotate},
		{"retire", 1, y.retire},
		{"revoke", 1, y.revoke},
		{"rewrap", 1, y.rewrap},
		{"redeliver", 4, y.redeliver},
		{"replay", 4, y.replay},
		{"prune", 2, y.prune},
		{"send a test", 1, y.sendTest},
		{"publish and roll back", 2, y.publishAndRollBack},
	}
}

// pick returns one of the subscriptions that fit, or nil.
func (y *year[Tx]) pick(fits func(s *yearSub) bool) *yearSub {
	var some []*yearSub
	for _, s := range y.subs {
		if fits(s) {
			some = append(some, s)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return some[y.rand.IntN(len(some))]
}

func is(statuses ...sender.SubscriptionStatus) func(s *yearSub) bool {
	return func(s *yearSub) bool { return slices.Contains(statuses, s.status) }
}

func (y *year[Tx]) pickOwner() *yearOwner {
	var some []*yearOwner
	for _, o := range y.owners {
		if !o.deleted {
			some = append(some, o)
		}
	}
	return some[y.rand.IntN(len(some))]
}

func (y *year[Tx]) name(prefix string) string {
	y.made++
	return fmt.Sprintf("%s%d", prefix, y.made)
}

func (y *year[Tx]) createSubscriber() {
	live := 0
	for _, o := range y.owners {
		if !o.deleted {
			live++
		}
	}
	if live >= yearSubscribers {
		return
	}
	o := &yearOwner{id: y.name("sub_")}
	_, secret, err := y.reg.CreateSubscriber(y.ctx(), sender.NewSubscriber{ID: o.id})
	require.NoError(y.t, err)
	o.valid, o.known = []yearSecret{{secret: secret}}, []signing.Secret{secret}
	y.owners = append(y.owners, o)
}

func (y *year[Tx]) deleteSubscriber() {
	o := y.pickOwner()
	if o == y.owners[0] || len(y.owners) < 3 {
		return
	}
	y.expand() // so that the model knows what was committed before
	require.NoError(y.t, y.reg.DeleteSubscriber(y.ctx(), o.id))
	o.deleted = true
	for _, s := range y.subs {
		switch {
		case s.owner != o:
		case s.status == sender.SubscriptionActive:
			s.status = sender.SubscriptionClosing
		case s.status == sender.SubscriptionPaused, s.status == sender.SubscriptionDisabled:
			s.status = ""
		}
	}
}

func (y *year[Tx]) subscribe() {
	live := 0
	for _, s := range y.subs {
		if s.status != "" {
			live++
		}
	}
	if live >= yearSubscriptions {
		return
	}
	s := &yearSub{
		owner: y.pickOwner(), status: sender.SubscriptionActive, markers: dedup.New(),
		applied: map[string]int{}, version: map[string]int64{}, acked: map[string]bool{}, bodies: map[string][]byte{},
	}
	host := y.name("host-") + ".example.com"
	got, err := y.reg.Subscribe(y.ctx(), sender.NewSubscription{Subscriber: s.owner.id, URL: "https://" + host + "/"})
	require.NoError(y.t, err)
	s.id = got.ID
	y.hosts[host] = s
	y.subs = append(y.subs, s)
	y.verify(s)
}

// verify gives a subscription's receiver the secrets that its owner knows.
func (y *year[Tx]) verify(s *yearSub) {
	var keys []signing.Key
	for i, secret := range s.owner.known {
		keys = append(keys, signing.Key{ID: strconv.Itoa(i), Secret: secret})
	}
	keyring, err := signing.NewKeyring(keys...)
	require.NoError(y.t, err)
	verifier, err := signing.NewVerifier(keyring, &signing.VerifierConfig{Now: y.clock.Now})
	require.NoError(y.t, err)
	rcv, err := receiver.New(verifier, s.markers.InTx, s.markers, &receiver.Config{Now: y.clock.Now, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(y.t, err)
	s.rcv = rcv.Handler(func(_ context.Context, _ *dedup.Tx, ev receiver.Event) error {
		s.applied[ev.ID]++
		if ev.Version <= s.version[ev.Object.Type+"/"+ev.Object.ID] {
			y.t.Errorf("version %d of %s was applied after %d", ev.Version, ev.Object.ID, s.version[ev.Object.Type+"/"+ev.Object.ID])
		}
		s.version[ev.Object.Type+"/"+ev.Object.ID] = ev.Version
		return nil
	})
}

func (y *year[Tx]) unsubscribe() {
	if s := y.pick(is(sender.SubscriptionActive, sender.SubscriptionPaused, sender.SubscriptionDisabled)); s != nil {
		require.NoError(y.t, y.reg.Unsubscribe(y.ctx(), s.id))
		s.status = ""
	}
}

func (y *year[Tx]) close() {
	if s := y.pick(is(sender.SubscriptionActive, sender.SubscriptionPaused)); s != nil {
		y.expand()
		require.NoError(y.t, y.reg.Close(y.ctx(), s.id))
		if s.status == sender.SubscriptionActive {
			s.status = sender.SubscriptionClosing
		} else {
			s.status = ""
		}
	}
}

func (y *year[Tx]) move() {
	if s := y.pick(is(sender.SubscriptionActive, sender.SubscriptionPaused)); s != nil {
		host := y.name("host-") + ".example.com"
		url := "https://" + host + "/moved"
		_, err := y.reg.Update(y.ctx(), s.id, sender.SubscriptionChange{URL: &url})
		require.NoError(y.t, err)
		for old, of := range y.hosts {
			if of == s {
				delete(y.hosts, old)
			}
		}
		y.hosts[host] = s
	}
}

func (y *year[Tx]) pause() {
	if s := y.pick(is(sender.SubscriptionActive)); s != nil {
		require.NoError(y.t, y.reg.Pause(y.ctx(), s.id))
		s.status = sender.SubscriptionPaused
	}
}

func (y *year[Tx]) disable() {
	if s := y.pick(is(sender.SubscriptionActive)); s != nil {
		require.NoError(y.t, y.reg.Disable(y.ctx(), s.id, "the operator says so"))
		s.status = sender.SubscriptionDisabled
	}
}

func (y *year[Tx]) resume() {
	s := y.pick(is(sender.SubscriptionPaused, sender.SubscriptionDisabled))
	if s == nil {
		return
	}
	y.look(s)
	var take sender.Resume
	switch y.rand.IntN(4) {
	case 0:
		take.None = true
	case 1:
		take.Since = y.clock.now.Add(-time.Duration(y.rand.IntN(100)) * time.Hour)
	}
	y.say("take %+v", take)
	y.counts[fmt.Sprintf("resumes none=%v since=%v", take.None, !take.Since.IsZero())]++
	y.expand()
	err := y.reg.Resume(y.ctx(), s.id, take)
	if refused := (*sender.RetentionError)(nil); errors.As(err, &refused) {
		require.Greater(y.t, y.clock.now.Sub(refused.Published), yearReach)
		y.counts["resumes refused for retention"]++
		take.Force = true
		err = y.reg.Resume(y.ctx(), s.id, take)
	}
	require.NoError(y.t, err)
	for _, d := range y.deliveries {
		if d.sub != s || terminal(d.status) && d.hurried.Before(y.clock.now) && d.status != sender.StatusDelivered {
			continue
		}
		d.hurry(y.clock.now)
		if e := y.event(d.event); d.status != sender.StatusDelivered && (take.None || !take.Since.IsZero() && e.Before(take.Since)) {
			d.status = sender.StatusCancelled // as check finds it
		}
	}
	if s.status == sender.SubscriptionDisabled {
		s.streak, s.failingSince = 0, time.Time{}
	}
	s.status = sender.SubscriptionActive
}

// event is when an event was published.
func (y *year[Tx]) event(id string) time.Time {
	for _, e := range y.events {
		if e.id == id {
			return e.at
		}
	}
	return time.Time{}
}

func (y *year[Tx]) outage() {
	if s := y.pick(func(s *yearSub) bool { return s.outage == "" && s.status != "" }); s != nil {
		s.outage = []string{"500", "500", "breaks", "applies and breaks", "redirects"}[y.rand.IntN(5)]
		y.say("it %s", s.outage)
	}
}

func (y *year[Tx]) recover() {
	if s := y.pick(func(s *yearSub) bool { return s.outage != "" }); s != nil {
		s.outage = ""
	}
}

// learn tells the subscriptions of an owner its secrets.
func (y *year[Tx]) learn(o *yearOwner, secrets ...signing.Secret) {
	o.known = secrets
	for _, s := range y.subs {
		if s.owner == o {
			y.verify(s)
		}
	}
}

func (y *year[Tx]) rotate() {
	o := y.pickOwner()
	y.expire(o)
	if len(o.valid) > 2 {
		return
	}
	secret, until, err := y.reg.RotateSecret(y.ctx(), o.id, &sender.Rotation{Overlap: 48 * time.Hour})
	require.NoError(y.t, err)
	require.Equal(y.t, y.clock.now.Add(48*time.Hour), until)
	o.valid[len(o.valid)-1].until = until
	o.valid = append(o.valid, yearSecret{secret: secret})
	y.learn(o, append(slices.Clone(o.known), secret)...)
}

func (y *year[Tx]) expire(o *yearOwner) {
	o.valid = slices.DeleteFunc(o.valid, func(s yearSecret) bool { return !s.until.IsZero() && !s.until.After(y.clock.now) })
	var known []signing.Secret
	for _, s := range o.valid {
		known = append(known, s.secret)
	}
	y.learn(o, known...)
}

func (y *year[Tx]) retire() {
	o := y.pickOwner()
	require.NoError(y.t, y.reg.RetireSecret(y.ctx(), o.id))
	o.valid = o.valid[len(o.valid)-1:]
	y.learn(o, o.valid[0].secret)
}

func (y *year[Tx]) revoke() {
	o := y.pickOwner()
	secret, err := y.reg.RevokeSecret(y.ctx(), o.id, signing.Secret{})
	require.NoError(y.t, err)
	o.valid = []yearSecret{{secret: secret}}
	y.learn(o, secret)
}

// rewrap seals everything under a new key, and forgets the old one.
func (y *year[Tx]) rewrap() {
	id := y.name("k")
	y.sealing = append(y.sealing, sender.SealingKey{ID: id, Key: bytes.Repeat([]byte{byte(y.made)}, 32)})
	y.open()
	_, err := y.reg.Rewrap(y.ctx())
	require.NoError(y.t, err)
	y.sealing = y.sealing[len(y.sealing)-1:]
	y.open()
}

func (y *year[Tx]) redeliver() {
	if len(y.deliveries) == 0 {
		return
	}
	d := y.deliveries[y.rand.IntN(len(y.deliveries))]
	if y.rand.IntN(2) == 0 { // those that are of more interest
		for _, other := range y.deliveries {
			if other.status == sender.StatusDeadLettered && other.sub.status != "" {
				d = other
			}
		}
	}
	y.checkDelivery(d)
	err := y.history.Redeliver(y.ctx(), d.id)
	if age := y.clock.now.Sub(y.event(d.event)); errors.Is(err, sender.ErrRetention) && !d.notice {
		require.Greater(y.t, age, yearReach)
		y.counts["refused for retention"]++
		err = y.history.RedeliverForced(y.ctx(), d.id)
	}
	switch {
	case errors.Is(err, sender.ErrRetention):
		return
	case d.pruned:
		require.ErrorIs(y.t, err, sender.ErrNotFound)
	case d.status == sender.StatusCancelled || d.sub.status == "":
		require.Error(y.t, err, "a delivery that is %s was redelivered", d.status)
	default:
		if errors.Is(err, sender.ErrCancelled) && d.sub.status == sender.SubscriptionClosing {
			return // it has come to its end
		}
		require.NoError(y.t, err)
		y.say("%s, which is %s", d.id, d.status)
		y.counts["redeliveries of "+string(d.status)]++
		d.hurry(y.clock.now)
	}
}

// replay sends all of a subscription again that have ended in one way.
func (y *year[Tx]) replay() {
	s := y.pick(func(s *yearSub) bool { return s.status != "" && s.status != sender.SubscriptionClosing })
	if s == nil {
		return
	}
	y.look(s)
	n := sender.NewReplay{Filter: sender.ReplayFilter{Subscription: s.id}, By: "somebody"}
	want := sender.StatusDeadLettered
	if y.rand.IntN(3) == 0 {
		want = sender.StatusDelivered
		n.Filter.Since = y.clock.now.Add(-time.Duration(y.rand.IntN(72)) * time.Hour)
	}
	n.Filter.Status = want
	var set []*yearDelivery
	for _, d := range y.deliveries {
		if d.sub == s && d.status == want && !d.pruned && !d.notice && !y.event(d.event).Before(n.Filter.Since) {
			set = append(set, d)
		}
	}
	preview, err := y.replays.Preview(y.ctx(), n.Filter)
	require.NoError(y.t, err)
	r, err := y.replays.Create(y.ctx(), n)
	if errors.Is(err, sender.ErrRetention) {
		require.Greater(y.t, y.clock.now.Sub(preview.Oldest), yearReach)
		n.Force = true
		r, err = y.replays.Create(y.ctx(), n)
	}
	require.NoError(y.t, err)
	require.Equal(y.t, preview.Count, r.Matched)
	require.GreaterOrEqual(y.t, r.Matched, int64(len(set)), "besides, there are notices")
	y.say("of %d that are %s", r.Matched, want)
	y.counts["replays"]++
	y.counts["replayed"] += int(r.Matched)
	if y.rand.IntN(4) == 0 {
		_, err = y.replays.Cancel(y.ctx(), r.ID)
		require.NoError(y.t, err)
		return
	}
	y.running = append(y.running, r.ID)
	for _, d := range y.deliveries {
		if d.sub == s && d.status == want {
			d.hurry(y.clock.now)
		}
	}
}

func (y *year[Tx]) prune() {
	p, err := y.disp.Prune(y.ctx())
	require.NoError(y.t, err)
	y.counts["pruned records"] += p.Deliveries
	y.counts["pruned events"] += p.Events
}

func (y *year[Tx]) sendTest() {
	if s := y.pick(is(sender.SubscriptionActive)); s != nil {
		ref, err := y.reg.SendTest(y.ctx(), s.id)
		require.NoError(y.t, err)
		y.events = append(y.events, &yearEvent{id: ref.ID, object: s.id, version: ref.Version, at: y.clock.now, audience: []*yearSub{s}})
	}
}

func (y *year[Tx]) publishSome() {
	for range y.rand.IntN(4) {
		object := fmt.Sprint(y.rand.IntN(5))
		e := sender.Event{Type: "thing.changed", Object: sender.Object{Type: "thing", ID: object}}
		to := (*yearOwner)(nil)
		if y.rand.IntN(2) == 0 {
			to = y.pickOwner()
			e.Subscriber = to.id
		}
		ref, err := y.pub.Publish(y.ctx(), e)
		require.NoError(y.t, err)
		require.Greater(y.t, ref.Version, y.versions[object], "versions rise")
		y.versions[object] = ref.Version
		known := &yearEvent{id: ref.ID, object: object, version: ref.Version, at: y.clock.now}
		for _, s := range y.subs {
			if s.status != "" && s.status != sender.SubscriptionClosing && (to == nil || s.owner == to) {
				known.audience = append(known.audience, s)
			}
		}
		y.events = append(y.events, known)
	}
}

var errUndone = errors.New("undone")

func (y *year[Tx]) publishAndRollBack() {
	err := y.pub.InTx(y.ctx(), func(tx Tx) error {
		ref, err := y.pub.PublishTx(y.ctx(), tx, sender.Event{Type: "thing.changed", Object: sender.Object{Type: "thing", ID: "1"}})
		y.undone[ref.ID] = true
		return errors.Join(err, errUndone)
	})
	require.ErrorIs(y.t, err, errUndone)
}

func (y *year[Tx]) advance() {
	by := []time.Duration{time.Minute, time.Hour, 5 * time.Hour, 13 * time.Hour, 22 * time.Hour, 23 * time.Hour, 23 * time.Hour}
	y.clock.now = y.clock.now.Add(by[y.rand.IntN(len(by))])
}

// expand makes the deliveries of what has been committed.
func (y *year[Tx]) expand() {
	for more := true; more; {
		x, err := y.store.Expand(y.ctx(), sender.ExpandParams{Events: 100, Deliveries: 1000})
		require.NoError(y.t, err)
		more = x.More
	}
	y.discover()
}

// dispatch does what is due now, and what is swept.
func (y *year[Tx]) dispatch() {
	for _, o := range y.owners {
		y.expire(o)
	}
	y.expand()
	_, err := y.disp.RunOnce(y.ctx())
	require.NoError(y.t, err)
	for n := 1; n > 0; {
		n, err = y.store.Sweep(y.ctx(), 100)
		require.NoError(y.t, err)
	}
	y.discover() // notices have made events, and those deliveries
}

func newBody(b []byte) io.Reader { return bytes.NewReader(b) }

func (d *yearDelivery) hurry(now time.Time) {
	d.hurried = now
	d.early = append(d.early, d.posts+1)
}
