package storetest

import (
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

func fairnessRules() []rule {
	return []rule{
		{"slots", "A claim gives no more deliveries of a lane than it has slots.", fairSlots},
		{"bounds of each", "A claim gives a subscriber and a subscription no more than the lane's figures say.", fairBounds},
		{"room of each", "Where a claim says how much room a subscriber or a subscription has, that holds instead of the lane's figure, and who has none stands in nobody's way.", fairRoom},
		{"a backlog delays nobody", "A delivery that becomes due behind another's backlog is in the next claim that has a slot for each.", fairBacklog},
		{"shares of subscribers", "Subscribers with work due share a lane's slots evenly, however many subscriptions or deliveries each has.", fairSubscribers},
		{"shares of subscriptions", "A subscriber's subscriptions share what it gets evenly.", fairSubscriptions},
		{"turns", "Subscribers and subscriptions that were served go to the tail: if there are fewer slots than work, all take turns.", fairTurns},
		{"lanes", "A subscription's deliveries are claimed under the slots of the lane that its Health names, which a decision can change.", fairLanes},
	}
}

// given counts claimed deliveries by subscriber and by subscription.
func given(claimed []dispatch.Claimed) map[string]int {
	n := map[string]int{}
	for _, c := range claimed {
		n[c.Target.Subscriber]++
		n[c.Target.Subscription]++
	}
	return n
}

// crowd is subscribers with one subscription each, with n deliveries due.
func (w *world) crowd(subscribers, n int) (owners, subs []string) {
	w.Helper()
	for range subscribers {
		owner := w.subscriber()
		sub := w.subscribe(owner, "only.addressed")
		w.backlog(owner, sub, n)
		owners, subs = append(owners, owner), append(subs, sub)
	}
	return owners, subs
}

func fairSlots(w *world) {
	w.crowd(3, 10)
	for _, slots := range []int{1, 2, 4, 5} {
		w.equal(len(w.claim(slots)), slots, "deliveries claimed with more due than slots")
	}
	w.equal(len(w.claim(0)), 0, "deliveries claimed without slots")
	w.equal(len(w.claim(plenty)), 30-1-2-4-5, "deliveries claimed with slots for all")
}

func fairBounds(w *world) {
	owner := w.subscriber()
	var subs []string
	for range 3 {
		sub := w.subscribe(owner, "only.addressed")
		w.backlog(owner, sub, 10)
		subs = append(subs, sub)
	}
	p := dispatch.ClaimParams{Lease: lease}
	p.Lanes[sender.LaneNew] = dispatch.LaneParams{Slots: 100, PerSubscriber: 7, PerSubscription: 3}
	got := given(w.claimBy(p).Claimed)
	w.equal(got[owner], 7, "deliveries to a subscriber that may have 7")
	for _, sub := range subs {
		w.check(got[sub] <= 3, "a subscription that may have 3 deliveries got %d", got[sub])
	}
	w.Advance(time.Millisecond)
	p.Lanes[sender.LaneNew].PerSubscriber = 100
	got = given(w.claimBy(p).Claimed)
	for _, sub := range subs {
		w.equal(got[sub], 3, "deliveries to a subscription that may have 3")
	}
}

func fairRoom(w *world) {
	owners, subs := w.crowd(5, 10)
	number := map[string]int64{}
	for _, c := range w.claim(5) { // one of each
		number[c.Target.Subscriber], number[c.Target.Subscription] = c.Target.SubscriberNumber, c.Target.SubscriptionNo
	}
	w.equal(len(number), 10, "subscribers and subscriptions that got one of five slots each")
	w.Advance(time.Second)
	last := w.subscriber()
	lastSub := w.subscribe(last, "only.addressed")
	w.backlog(last, lastSub, 10)

	p := dispatch.ClaimParams{Lease: lease, SubscriptionRoom: map[int64]int{number[subs[2]]: 0, number[subs[3]]: 3}}
	p.Lanes[sender.LaneNew] = dispatch.LaneParams{
		Slots: 100, PerSubscriber: 4, PerSubscription: 5,
		SubscriberRoom: map[int64]int{number[owners[0]]: 0, number[owners[1]]: 2, number[owners[4]]: -3},
	}
	got := given(w.claimBy(p).Claimed)
	w.equal(got[owners[0]], 0, "deliveries to a subscriber with room for none")
	w.equal(got[owners[1]], 2, "deliveries to a subscriber with room for 2")
	w.equal(got[owners[4]], 0, "deliveries to a subscriber with less than no room")
	w.equal(got[subs[2]], 0, "deliveries to a subscription with room for none")
	w.equal(got[subs[3]], 3, "deliveries to a subscription with room for 3")
	w.equal(got[last], 4, "deliveries to a subscriber that the rooms do not mention")

	// With one slot: subscriptions without room have waited longer, and are passed
	// over.
	w.Advance(time.Second)
	p.Lanes[sender.LaneNew] = dispatch.LaneParams{Slots: 1, PerSubscriber: 1, PerSubscription: 1, SubscriberRoom: map[int64]int{}}
	p.SubscriptionRoom = map[int64]int{number[subs[2]]: 0}
	for _, i := range []int{0, 1, 3, 4} {
		p.Lanes[sender.LaneNew].SubscriberRoom[number[owners[i]]] = 0
	}
	claims := w.claimBy(p)
	w.equal(given(claims.Claimed), map[string]int{last: 1, lastSub: 1}, "deliveries given to the only one with room")
	w.check(!claims.NextDue.IsZero() && claims.NextDue.Before(claims.Now.Add(time.Millisecond)), "NextDue with work that lack of room kept from being claimed: got %v, want at most about %v", claims.NextDue, claims.Now)
	w.Advance(time.Second)
	w.equal(len(w.claim(plenty)), 60-5-9-1, "deliveries claimed once all have room")
}

func fairBacklog(w *world) {
	big := w.subscriber()
	bigSub, sibling := w.subscribe(big, "only.addressed"), w.subscribe(big, "only.addressed")
	w.backlog(big, bigSub, 2000)
	w.Advance(time.Minute)
	w.equal(len(w.claim(10)), 10, "deliveries claimed of a backlog")

	w.Advance(time.Second)
	small := w.subscriber()
	smallSub := w.subscribe(small, "only.addressed")
	w.backlog(small, smallSub, 1)
	w.backlog(big, sibling, 1)
	got := given(w.claim(10))
	w.equal(got[smallSub], 1, "deliveries to another subscriber than the one with the backlog")
	w.equal(got[sibling], 1, "deliveries to another subscription of the subscriber with the backlog")
}

func fairSubscribers(w *world) {
	owners, _ := w.crowd(2, 30)
	many := w.subscriber()
	for range 5 {
		w.backlog(many, w.subscribe(many, "only.addressed"), 30)
	}
	for range 3 {
		w.Advance(time.Second)
		got := given(w.claim(9))
		w.equal([]int{got[owners[0]], got[owners[1]], got[many]}, []int{3, 3, 3}, "shares of three subscribers in nine slots")
	}
}

func fairSubscriptions(w *world) {
	owner := w.subscriber()
	var subs []string
	for _, n := range []int{100, 30, 30} {
		sub := w.subscribe(owner, "only.addressed")
		w.backlog(owner, sub, n)
		subs = append(subs, sub)
	}
	for range 3 {
		w.Advance(time.Second)
		got := given(w.claim(9))
		w.equal([]int{got[subs[0]], got[subs[1]], got[subs[2]]}, []int{3, 3, 3}, "shares of three subscriptions in nine slots")
	}
}

func fairTurns(w *world) {
	owners, _ := w.crowd(2, 20)
	two := w.subscriber()
	var subs []string
	for range 2 {
		sub := w.subscribe(two, "only.addressed")
		w.backlog(two, sub, 20)
		subs = append(subs, sub)
	}
	total := map[string]int{}
	for range 12 {
		w.Advance(time.Second)
		got := w.claim(1)
		w.equal(len(got), 1, "deliveries claimed with one slot")
		total[got[0].Target.Subscriber]++
		total[got[0].Target.Subscription]++
	}
	w.equal([]int{total[owners[0]], total[owners[1]], total[two]}, []int{4, 4, 4}, "turns of three subscribers in twelve claims of one")
	w.equal([]int{total[subs[0]], total[subs[1]]}, []int{2, 2}, "turns of the two subscriptions of one of them")
}

func fairLanes(w *world) {
	owners, subs := w.crowd(2, 6)
	claim := func(lane sender.Lane, slots int) []dispatch.Claimed {
		w.Helper()
		w.Advance(time.Second)
		got := w.claimBy(only(lane, slots)).Claimed
		for _, c := range got {
			w.equal(c.Target.Lane, lane, "lane of the Target")
		}
		return got
	}
	w.equal(len(claim(sender.LaneProven, plenty)), 0, "deliveries of new subscriptions claimed under the proven lane's slots")
	w.equal(len(claim(sender.LaneProbation, plenty)), 0, "deliveries of new subscriptions claimed under the probation lane's slots")
	first := claim(sender.LaneNew, 2)
	w.equal(given(first), map[string]int{owners[0]: 1, subs[0]: 1, owners[1]: 1, subs[1]: 1}, "deliveries of new subscriptions claimed")
	for _, c := range first {
		if c.Target.Subscription == subs[0] {
			w.record(result(c, sender.ClassNone)) // moves it to the proven lane
		}
	}
	proven := claim(sender.LaneProven, 2)
	w.equal(given(proven), map[string]int{owners[0]: 2, subs[0]: 2}, "deliveries claimed under the proven lane's slots")
	w.equal(given(claim(sender.LaneNew, 2)), map[string]int{owners[1]: 2, subs[1]: 2}, "deliveries claimed under the new lane's slots once one has left it")

	w.record(result(proven[0], sender.ClassTimeout)) // moves it to the probation lane
	w.equal(len(claim(sender.LaneProven, plenty)), 0, "deliveries claimed under the proven lane's slots once nobody is in it")
	w.equal(given(claim(sender.LaneProbation, plenty)), map[string]int{owners[0]: 3, subs[0]: 3}, "deliveries claimed under the probation lane's slots")
	w.equal(given(claim(sender.LaneNew, plenty)), map[string]int{owners[1]: 3, subs[1]: 3}, "deliveries claimed under the new lane's slots")

	w.backlog(owners[1], subs[1], 1)
	_, both, err := w.Store.Step(w.ctx, dispatch.ExpandParams{}, dispatch.Batch{
		Results: []dispatch.Result{result(proven[1], sender.ClassNone), result(first[slices.IndexFunc(first, func(c dispatch.Claimed) bool { return c.Target.Subscription == subs[1] })], sender.ClassNone)},
		Decide:  w.decide, Claim: only(sender.LaneProven, plenty),
	})
	w.noError(err, "recording and claiming")
	w.equal(given(both.Claimed), map[string]int{owners[1]: 1, subs[1]: 1}, "deliveries claimed under the lane that a result of the same batch moved their subscription to")
	w.equal(both.Claimed[0].Target.Lane, sender.LaneProven, "lane of the Target")
}
