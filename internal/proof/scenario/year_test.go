package scenario_test

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
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/backoff"
	dedup "github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/internal/race"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/replay"
	"github.com/surehook/surehook/sender/sqlite"
	"github.com/surehook/surehook/sender/storetest"
	"github.com/surehook/surehook/signing"
)

// A year in the life of a few subscriptions, in virtual time: their owners pause, resume,
// change, close and delete them, rotate their secrets, and have outages of days. The
// operator disables, redelivers, replays and prunes. Every invariant is checked after every
// step, against the posts on the wire and against a model of the rules. A failing seed
// fails again.
func TestYear(t *testing.T) {
	t.Parallel()
	ends, onSQLite := yearBegins.AddDate(1, 0, 0), yearBegins.AddDate(0, 6, 0) // which takes longer
	if race.Enabled {                                                          // it makes SQLite many times slower
		ends = yearBegins.AddDate(0, 1, 0)
		onSQLite = yearBegins.AddDate(0, 0, 10)
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
		runYear(t, store, clock, onSQLite, 4)
	})
}

var yearBegins = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// The policy's own figures, and those of the model's checks.
const (
	yearDisableAfter  = 120 * time.Hour
	yearDisableStreak = 5
	yearSilence       = 24 * time.Hour
	yearReach         = 28 * 24 * time.Hour
	yearSubscribers   = 4
	yearSubscriptions = 8
)

// yearClock is a clock that only the test moves.
type yearClock struct{ now time.Time }

func (c *yearClock) Now() time.Time { return c.now }

// year has the service, its subscribers, and the model of them.
type year[Tx any] struct {
	t     *testing.T
	rand  *rand.Rand
	clock *yearClock

	store   storetest.Store[Tx]
	reg     *sender.Registry[Tx]
	pub     *sender.Publisher[Tx]
	history *history.History
	replays *replay.Replays
	keys    *sender.Keys
	sealing []sender.SealingKey
	disp    *dispatch.Dispatcher

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
	status  sender.SubscriptionStatus // the status that it should have; "" once it is deleted
	outage  string                    // "": up
	markers *dedup.Store
	rcv     http.Handler
	applied map[string]int   // by event
	version map[string]int64 // by object
	acked   map[string]bool  // events that the endpoint has answered with 2xx
	bodies  map[string][]byte

	// The figures that decide when it is disabled.
	failingSince, lastFailure time.Time
	streak, warned            int
	warnedAt                  time.Time
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
	seen    int       // how many there were at the last look
	hurried time.Time // when the delivery was last redelivered, replayed or resumed
	early   []int     // numbers of attempts that this may bring forward
	pruned  bool
	notice  bool
}

func runYear[Tx any](t *testing.T, store storetest.Store[Tx], clock *yearClock, ends time.Time, seed uint64) {
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
	y.history, err = history.New(y.store, &history.Config{Now: y.clock.Now})
	require.NoError(y.t, err)
	y.replays, err = replay.New(y.store, &replay.Config{Now: y.clock.Now})
	require.NoError(y.t, err)
	y.disp, err = dispatch.New(y.store, y.keys, &dispatch.Config{
		UnguardedTransport: yearWire(y.post),
		Logger:             slog.New(slog.DiscardHandler),
		Chance:             y.chance(),
		Policy:             dispatch.Policy{Backoff: backoff.Reference(), DisableAfter: yearDisableAfter},
	})
	require.NoError(y.t, err)
}

// Many goroutines use chance at once, so it must not decide anything.
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

// expand makes the deliveries of all committed events.
func (y *year[Tx]) expand() {
	for more := true; more; {
		x, _, err := y.store.Step(y.ctx(), dispatch.ExpandParams{Events: 100, Deliveries: 1000}, dispatch.Batch{})
		require.NoError(y.t, err)
		more = x.More
	}
	y.discover()
}

// dispatch makes the due attempts, and sweeps.
func (y *year[Tx]) dispatch() {
	for _, o := range y.owners {
		y.expire(o)
	}
	y.expand()
	_, err := y.disp.RunOnce(y.ctx())
	require.NoError(y.t, err)
	for swept := (dispatch.Swept{Ended: 1}); swept.Ended > 0; {
		swept, err = y.store.Sweep(y.ctx(), dispatch.SweepParams{Limit: 100})
		require.NoError(y.t, err)
	}
	y.discover() // notices have made events, and those deliveries
}

func newBody(b []byte) io.Reader { return bytes.NewReader(b) }

func (d *yearDelivery) hurry(now time.Time) {
	d.hurried = now
	d.early = append(d.early, d.posts+1)
}
