package dispatch

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surehook/surehook/sender"
)

// about returns an attempt about an object; event is the number of its event.
func about(subscription int64, lane sender.Lane, object string, event int64, number int) *attempt {
	a := claimed(subscription, subscription%4, lane)
	a.Key, a.Number, a.Event.Object = DeliveryKey{Event: event, Subscription: subscription}, number, sender.Object{Type: "thing", ID: object}
	return a
}

func TestSlotsFirstAttemptsAboutAnObjectTakeTurns(t *testing.T) {
	s := testSlots()
	first, second, third := about(1, sender.LaneProven, "x", 1, 1), about(1, sender.LaneProven, "x", 2, 1), about(1, sender.LaneProven, "x", 4, 1)
	other, elsewhere, retry := about(1, sender.LaneProven, "y", 3, 1), about(2, sender.LaneProven, "x", 2, 1), about(1, sender.LaneProven, "x", 5, 2)
	for _, a := range []*attempt{retry, first, second, other, third, elsewhere} {
		s.add(a)
	}
	require.ElementsMatch(t, []*attempt{first, other, elsewhere, retry}, drive(s), "those that are first, of each object and subscription, and retries")
	s.finished(retry, sender.ClassNone, time.Millisecond, time.Second)
	s.finished(other, sender.ClassNone, time.Millisecond, time.Second)
	require.Empty(t, drive(s), "neither a retry nor another object lets them go")
	require.Equal(t, 3, s.subs[1].held, "those behind are held")

	s.finished(first, sender.ClassStatus, time.Millisecond, time.Second)
	require.Equal(t, []*attempt{second}, drive(s), "one that failed holds nobody back")
	s.spared(second)
	require.Equal(t, []*attempt{third}, drive(s), "nor does one that was spared")
	s.finished(third, sender.ClassNone, time.Millisecond, time.Second)
	s.finished(elsewhere, sender.ClassNone, time.Millisecond, time.Second)
	require.Empty(t, s.chains)
	later := about(1, sender.LaneProven, "x", 6, 1)
	s.add(later)
	require.Equal(t, []*attempt{later}, drive(s))
}

// An attempt becomes free neither later nor sooner than it would by itself.
func TestSlotsTurnsAreThoseOfTheClaims(t *testing.T) {
	s := testSlots()
	var all []*attempt
	for event, object := range []string{"x", "x", "y", "z", "x"} {
		a := about(1, sender.LaneNew, object, int64(event), 1)
		all = append(all, a)
		s.add(a)
	}
	for _, want := range all { // one at a time: each of them is on probation
		require.Equal(t, []*attempt{want}, drive(s))
		s.finished(want, sender.ClassStatus, time.Millisecond, time.Second)
	}
}

// An attempt that is given back takes along the attempts behind it.
func TestSlotsGiveChainsBack(t *testing.T) {
	fill := func() (s *slots, all []*attempt) {
		s = testSlots()
		for event := range int64(6) {
			all = append(all, about(1, sender.LaneProven, []string{"x", "y"}[event%2], event, 1))
			s.add(all[event])
		}
		require.Equal(t, all[:2], drive(s))
		return s, all
	}
	forget := func(s *slots, back []*attempt) {
		for _, a := range back {
			s.forget(a)
		}
	}

	s, all := fill()
	back := s.offWire(all[0])
	require.Equal(t, []*attempt{all[0], all[2], all[4]}, back)
	forget(s, back)
	require.Equal(t, 3, s.subs[1].held)
	require.Empty(t, drive(s))
	s.finished(all[1], sender.ClassNone, time.Millisecond, time.Second)
	require.Equal(t, []*attempt{all[3]}, drive(s), "the other object's go on")

	s, all = fill()
	back = s.takeQueues(true)
	require.Equal(t, all[2:], back, "what is behind those on the wire, in the order of the claims")
	forget(s, back)
	again := about(1, sender.LaneProven, "x", 2, 1)
	s.add(again)
	require.Empty(t, drive(s), "what was claimed again is behind what is still on the wire")
	s.finished(all[0], sender.ClassNone, time.Millisecond, time.Second)
	require.Equal(t, []*attempt{again}, drive(s))

	s, all = fill()
	for event := range int64(8) {
		s.add(about(2, sender.LaneProven, "x", event, 1))
	}
	require.Len(t, drive(s), 1)
	require.Empty(t, s.takeQueues(false), "they are proven")
	s.slowed(all[0])
	require.True(t, s.crowded)
	require.Equal(t, all[2:], s.takeQueues(false), "on probation it has a place for one")
	require.Zero(t, s.subs[1].behind)
}

// No more deliveries of one object are claimed than it can use, however many places were
// earned.
func TestSlotsClaimLittleBehindOneObject(t *testing.T) {
	s := testSlots()
	s.add(about(1, sender.LaneProven, "x", 0, 1))
	drive(s)
	require.Equal(t, 4*4-1, s.claim().SubscriptionRoom[1], "nothing is behind another one")
	for event := range int64(3) {
		s.add(about(1, sender.LaneProven, "x", 1+event, 1))
	}
	require.Zero(t, s.claim().SubscriptionRoom[1], "what is claimed ahead for one place is held")
	s.add(about(1, sender.LaneProven, "y", 9, 1))
	require.Equal(t, 2*4-5, s.claim().SubscriptionRoom[1], "and for two")
}

// orderModel is slots with a store that has the deliveries without an attempt, and gives
// them out in the order of the events.
type orderModel struct {
	s          *slots
	stored     map[int64][]*attempt // by subscription
	wire, done []*attempt
	published  int64
	begun      map[int64]map[sender.Object]int64 // the last event whose first attempt was made, by subscription
	first      map[DeliveryKey]int               // how many first attempts have ended
}

func (m *orderModel) publish(subscription int64, object string) {
	m.published++
	lane := sender.Lane(subscription % sender.Lanes)
	m.stored[subscription] = append(m.stored[subscription], about(subscription, lane, object, m.published, 1))
}

func (m *orderModel) claim(subscription int64, most int) {
	n := min(most, len(m.stored[subscription]))
	for _, a := range m.stored[subscription][:n] {
		m.s.add(a)
	}
	m.stored[subscription] = m.stored[subscription][n:]
}

func (m *orderModel) release(back []*attempt) {
	for _, a := range back {
		m.s.forget(a)
		again := about(a.Target.SubscriptionNo, a.Target.Lane, a.Event.Object.ID, a.Key.Event, a.Number)
		all := append(m.stored[again.Key.Subscription], again)
		slices.SortFunc(all, func(x, y *attempt) int { return int(x.Key.Event - y.Key.Event) })
		m.stored[again.Key.Subscription] = all
	}
}

func (m *orderModel) start(t *rapid.T) {
	for a := m.s.next(); a != nil; a = m.s.next() {
		if a.Number == 1 {
			for _, other := range m.wire {
				require.False(t, other.Number == 1 && other.sub == a.sub && other.Event.Object == a.Event.Object, "two first attempts about %v at a time", a.Event.Object)
			}
			last := m.begun[a.sub.number]
			if last == nil {
				last = map[sender.Object]int64{}
				m.begun[a.sub.number] = last
			}
			require.GreaterOrEqual(t, a.Key.Event, last[a.Event.Object], "an event about %v was overtaken", a.Event.Object)
			last[a.Event.Object] = a.Key.Event
		}
		m.wire = append(m.wire, a)
	}
}

func (m *orderModel) takeOffWire(i int) *attempt {
	a := m.wire[i]
	m.wire = slices.Delete(m.wire, i, i+1)
	return a
}

func (m *orderModel) end(i int, class sender.Class, took time.Duration) {
	a := m.takeOffWire(i)
	if class == sender.ClassReset {
		m.s.spared(a)
	} else {
		m.s.finished(a, class, took, time.Second)
	}
	if a.Number == 1 {
		m.first[a.Key]++
	}
	m.done = append(m.done, a)
	if class != sender.ClassNone {
		m.s.add(about(a.Target.SubscriptionNo, a.Target.Lane, a.Event.Object.ID, a.Key.Event, 2))
	}
}

func (m *orderModel) record() {
	for _, a := range m.done {
		m.s.recorded(a)
	}
	m.done = nil
}

// No first attempt is begun before one of a lower version has ended, and each is made once,
// in whatever order events are published, claimed, answered, slowed and given back.
func TestPropertySlotsKeepOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := orderModel{s: testSlots(), stored: map[int64][]*attempt{}, begun: map[int64]map[sender.Object]int64{}, first: map[DeliveryKey]int{}}
		object := rapid.SampledFrom([]string{"x", "x", "x", "y", "z"})
		subscription := rapid.Int64Range(1, 4)
		onWire := func(fn func(i int)) func(t *rapid.T) {
			return func(t *rapid.T) {
				if len(m.wire) > 0 {
					fn(rapid.IntRange(0, len(m.wire)-1).Draw(t, "which"))
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"publish": func(t *rapid.T) {
				to := subscription.Draw(t, "to")
				for range rapid.IntRange(1, 5).Draw(t, "events") {
					m.publish(to, object.Draw(t, "object"))
				}
			},
			"claim":  func(t *rapid.T) { m.claim(subscription.Draw(t, "of"), rapid.IntRange(1, 8).Draw(t, "most")) },
			"start":  m.start,
			"answer": onWire(func(i int) { m.end(i, sender.ClassNone, time.Millisecond) }),
			"fail":   onWire(func(i int) { m.end(i, sender.ClassStatus, time.Millisecond) }),
			"hang":   onWire(func(i int) { m.end(i, sender.ClassTimeout, 2*time.Second) }),
			"spare":  onWire(func(i int) { m.end(i, sender.ClassReset, time.Millisecond) }),
			"not made": onWire(func(i int) {
				m.release(m.s.offWire(m.takeOffWire(i)))
			}),
			"slow": onWire(func(i int) {
				if a := m.wire[i]; !a.slow {
					m.s.slowed(a)
				}
			}),
			"give back": func(t *rapid.T) { m.release(m.s.takeQueues(rapid.Bool().Draw(t, "all"))) },
			"record":    func(*rapid.T) { m.record(); m.s.trim() },
			"":          m.check,
		})
		for left := true; left; { // all of them go in the end
			left = false
			for to := range m.stored {
				left = left || len(m.stored[to]) > 0
				m.claim(to, 100)
			}
			for m.start(t); len(m.wire) > 0; m.start(t) {
				left = true
				m.end(0, sender.ClassNone, time.Millisecond)
			}
			m.record()
		}
		require.Zero(t, m.s.held)
		require.Empty(t, m.s.chains)
		require.Len(t, m.first, int(m.published), "all were attempted")
		for key, n := range m.first {
			require.Equal(t, 1, n, "first attempts of %v", key)
		}
	})
}

func (m *orderModel) check(t *rapid.T) {
	behind := map[*subSlots]int{}
	for _, first := range m.s.chains {
		n := 0
		last := first
		for a := first.next; a != nil; last, a = a, a.next {
			n++
		}
		require.Same(t, last, first.last)
		behind[first.sub] += n
	}
	held := 0
	for _, sub := range m.s.subs {
		require.Equal(t, behind[sub], sub.behind)
		require.Equal(t, sub.held, sub.wire+len(sub.queue)+sub.behind)
		require.True(t, slices.IsSortedFunc(sub.queue, byOrder))
		held += sub.held
	}
	require.Equal(t, held, m.s.held)
}

// If the chains of two objects have the same hash, neither waits for the other.
func TestChainsOfTheSameHash(t *testing.T) {
	s := testSlots()
	first, other := about(1, sender.LaneProven, "x", 1, 1), about(1, sender.LaneProven, "y", 2, 1)
	s.add(first)
	other.sub = first.sub
	s.chains[s.chainOf(other)] = first
	s.add(other)
	require.ElementsMatch(t, []*attempt{first, other}, drive(s))
	for _, a := range []*attempt{other, first} {
		s.finished(a, sender.ClassNone, time.Millisecond, time.Second)
		s.recorded(a)
	}
	require.Zero(t, s.held)
	require.Zero(t, first.sub.behind)
}

// A claim that was under way while others of its chain were given back is given back with
// them.
func TestClaimsFollowWhatIsGivenBack(t *testing.T) {
	due := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := pump{back: []givenBack{{about(1, sender.LaneProven, "y", 1, 2), time.Time{}}, {about(1, sender.LaneProven, "x", 2, 1), due}}}
	got, ok := p.overtakes(about(1, sender.LaneProven, "x", 3, 1))
	require.True(t, ok)
	require.Equal(t, due, got)
	for what, a := range map[string]*attempt{
		"a retry": about(1, sender.LaneProven, "x", 1, 2), "another object": about(1, sender.LaneProven, "z", 3, 1),
		"another subscription": about(2, sender.LaneProven, "x", 3, 1), "behind a retry": about(1, sender.LaneProven, "y", 3, 1),
	} {
		_, ok := p.overtakes(a)
		require.False(t, ok, what)
	}

	q, begun := testPump(&due)
	q.back = p.back
	q.accept([]Claimed{about(1, sender.LaneProven, "x", 3, 1).Claimed, about(1, sender.LaneProven, "z", 4, 1).Claimed}, due, due)
	require.Len(t, *begun, 1)
	require.EqualValues(t, 4, (*begun)[0].Key.Event)
	require.Len(t, q.back, 3)
	require.EqualValues(t, 3, q.back[2].a.Key.Event)
	require.Equal(t, due, q.back[2].due)
	require.Equal(t, 2, q.slots.held, "it is held until it is given back")
}
