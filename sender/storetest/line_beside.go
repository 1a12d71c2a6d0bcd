package storetest

import (
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// Here are the rules of several lines, and of lines beside other deliveries of a subscription.

func lineAmongOthers(w *world) {
	owner, sub := w.ordered(byObject)
	e := w.versions(owner, sub, "a", "b", "a", "c", "d", "e", "c", "e")
	first := w.claim(3) // it is known now that what is left comes after c
	w.equal(eventsOf(first), []string{e[0], e[1], e[3]}, "the first three")
	w.Advance(lease / 2)
	w.record(result(first[0], sender.ClassNone), result(first[2], sender.ClassNone))
	w.equal(w.delivery(e[2], sub).NextAttemptAt, w.delivery(e[4], sub).NextAttemptAt, "what came out of the line of a and d, which was made with it, are due")
	w.equal(w.read(sub).Backlog, int64(6), "Backlog")
	second := w.claim(2)
	w.equal(eventsOf(second), []string{e[2], e[4]}, "the next two, with d and e pending")

	// The second of a gives way to the first one, which is sent again meanwhile.
	w.redeliver(w.delivery(e[0], sub).ID)
	w.record(result(second[0], sender.ClassNone), result(second[1], sender.ClassNone), result(first[1], sender.ClassNone))
	w.equal(w.read(sub).Backlog, int64(4), "Backlog with the one that is sent again")
	third := w.claims("the first of a again, the second of c, and the first of e", e[0], e[5], e[6])
	if w.Consistent != nil {
		w.Consistent(w.T)
	}
	w.record(result(third[0], sender.ClassNone), result(third[1], sender.ClassNone), result(third[2], sender.ClassNone))
	w.record(result(w.claims("the last of e", e[7])[0], sender.ClassNone))
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusDelivered: 8}, "statuses at the end")
}

func eventsOf(claimed []dispatch.Claimed) (ids []string) {
	for i := range claimed {
		ids = append(ids, claimed[i].Event.ID)
	}
	return ids
}

func lineSentAgainBeside(w *world) {
	owner, sub := w.ordered(byObject)
	a := w.versions(owner, sub, "a", "a")
	for _, id := range a {
		w.record(result(w.claims("at first", id)[0], sender.ClassNone))
	}
	for _, id := range a {
		w.redeliver(w.delivery(id, sub).ID)
	}
	b := w.versions(owner, sub, "b", "b")
	both := w.claims("the first of both lines", a[0], b[0])
	w.record(result(both[0], sender.ClassNone), result(both[1], sender.ClassNone))
	w.claims("the second of both lines", a[1], b[1])
}

func lineBeside(w *world) {
	owner, sub := w.ordered(byObject)
	e := w.versions(owner, sub, "a", "b", "a", "c", "b", "d", "a", "e", "f", "g")
	held := map[string]dispatch.Claimed{}
	step := func(n int, ended ...int) []string {
		b := dispatch.Batch{Decide: w.decide, Claim: dispatch.ClaimParams{Lease: lease, Token: w.token(), Lanes: lanes(n)}}
		for _, i := range ended {
			b.Results = append(b.Results, result(held[e[i]], sender.ClassNone))
		}
		_, c := w.dispatch(dispatch.ExpandParams{}, b)
		for _, cl := range c.Claimed {
			held[cl.Event.ID] = cl
		}
		return eventsOf(c.Claimed)
	}
	w.equal(step(3), []string{e[0], e[1], e[3]}, "the first of three lines")
	w.equal(step(1, 0), []string{e[2]}, "the second of a line, which is older than what was claimed besides")
	w.equal(step(1, 2), []string{e[5]}, "what was pending, which is older than the third of the line")
	w.equal(step(1, 1, 3), []string{e[4]}, "the second of another line")
	w.equal(step(2, 4, 5), []string{e[6], e[7]}, "the third of the first line, and one behind it")
	w.equal(step(0, 6, 7), []string(nil), "no slots")
	w.equal(step(plenty), []string{e[8], e[9]}, "the rest")
	step(0, 8, 9)
	e = w.versions(owner, sub, "a", "b", "a")
	w.equal(step(1), []string{e[0]}, "the first of two lines")
	w.equal(step(1, 0), []string{e[1]}, "as many as are pending, while another one comes out")
	w.equal(step(1), []string{e[2]}, "what came out")
}
