package storetest

import (
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

func keptBodyRules() []rule {
	return []rule{
		{"kept", "The first body that is kept for a delivery is its body, whoever keeps another one later, and after each of its attempts; other deliveries of the event have none.", keptFirst},
		{"kept, given back", "What was kept under a first claim that is given back is forgotten: nothing of it was sent. It stays after later ones.", keptGivenBack},
		{"kept, leased", "A body is kept only under the token of the delivery's present lease.", keptLeased},
		{"kept, redacted", "Redacting an event removes what is kept of it, and nothing is kept of it any more.", keptRedacted},
		{"kept, pruned", "What is kept goes with its event.", keptPruned},
	}
}

// keep keeps a body for a claim, or only asks, and returns what is kept of it.
func (w *world) keep(c dispatch.Claimed, body string) string {
	w.Helper()
	ask := dispatch.KeptBody{Key: c.Key, Token: c.Token}
	if body != "" {
		ask.Body = []byte(body)
	}
	kept, err := w.Store.KeepBodies(w.ctx, []dispatch.KeptBody{ask})
	w.noError(err, "keeping a body")
	w.check(len(kept) <= 1, "%d bodies are kept of one delivery", len(kept))
	return string(kept[c.Key])
}

func keptFirst(w *world) {
	owner := w.subscriber()
	subs := []string{w.subscribe(owner, "*"), w.subscribe(owner, "*"), w.subscribe(owner, "*")}
	d := w.draft("a.b")
	w.publish(d)
	w.expand()
	claims := map[string]dispatch.Claimed{}
	for _, c := range w.claim(plenty) {
		claims[c.Target.Subscription] = c
	}
	first, second, third := claims[subs[0]], claims[subs[1]], claims[subs[2]]
	w.equal(w.keep(first, ""), "", "what is kept at first")
	kept, err := w.Store.KeepBodies(w.ctx, []dispatch.KeptBody{
		{Key: second.Key, Token: second.Token, Body: []byte("2")}, {Key: third.Key, Token: third.Token}, {Key: first.Key, Token: first.Token, Body: []byte("1")},
	})
	w.noError(err, "keeping several bodies")
	w.equal(len(kept), 2, "number of bodies kept")
	w.equal([]string{string(kept[first.Key]), string(kept[second.Key])}, []string{"1", "2"}, "bodies kept")
	w.equal(w.keep(first, "other"), "1", "what is kept after another body")
	w.equal(w.keep(first, ""), "1", "what is kept")
	w.equal([]string{string(w.delivery(d.ID, subs[0]).Body), string(w.delivery(d.ID, subs[1]).Body), string(w.delivery(d.ID, subs[2]).Body)}, []string{"1", "2", string(d.Body(1))}, "bodies of the deliveries")
	e, err := w.Store.Event(w.ctx, d.ID)
	w.noError(err, "reading the event")
	w.equal(string(e.Body), string(d.Body(1)), "the event's own body")

	w.record(result(first, sender.ClassTimeout), result(second, sender.ClassNone), result(third, sender.ClassNone))
	w.Advance(retryDelay(1))
	again := w.claimOne()
	w.equal(again.Number, 2, "number of the attempt")
	w.equal(w.keep(again, "other"), "1", "what is kept at the second attempt")
	w.noError(w.Store.Release(w.ctx, []dispatch.Release{{Key: again.Key, Token: again.Token}}), "releasing")
	again = w.claimOne()
	w.equal(w.keep(again, "other"), "1", "what is kept after a release")
	w.record(result(again, sender.ClassNone))
	w.redeliver(w.delivery(d.ID, subs[0]).ID)
	again = w.claimOne()
	w.equal(w.keep(again, "other"), "1", "what is kept when it is sent again")
	w.equal(string(w.delivery(d.ID, subs[0]).Body), "1", "body of the delivery")
}

func keptGivenBack(w *world) {
	owner := w.subscriber()
	sub := w.subscribe(owner, "*")
	d := w.draft("a.b")
	w.publish(d)
	w.expand()
	c := w.claimOne()
	w.keep(c, "first")
	w.giveBack(c)
	w.equal(string(w.delivery(d.ID, sub).Body), string(d.Body(1)), "the delivery's body, given back")
	c = w.claimOne()
	w.equal(w.keep(c, ""), "", "what is kept, given back")
	w.equal(w.keep(c, "second"), "second", "what is kept anew")
	w.record(result(c, sender.ClassStatus))
	w.Advance(retryDelay(1))
	w.giveBack(w.claimOne())
	w.equal(w.keep(w.claimOne(), "third"), "second", "what is kept at the second attempt")
}

func keptLeased(w *world) {
	w.one()
	lost := w.claimOne()
	wrong := lost
	wrong.Token++
	w.equal(w.keep(wrong, "wrong"), "", "what is kept under another token")
	w.Advance(lease + time.Second)
	w.equal(len(w.claimBy(dispatch.ClaimParams{Lease: lease}).Claimed), 0, "deliveries claimed without room")
	present := w.claimOne()
	w.equal(w.keep(lost, "lost"), "", "what is kept under a token that is lost")
	w.equal(w.keep(present, "present"), "present", "what is kept under the present token")
	w.equal(w.keep(lost, "lost"), "present", "what a lost token is told")
	w.record(result(present, sender.ClassNone))
	w.equal(w.keep(present, "ended"), "present", "what is kept after the end")
	other, _ := w.one()
	c := w.claimOne()
	w.record(result(c, sender.ClassNone))
	w.equal(w.keep(c, "ended"), "", "what is kept of a delivery %s that has ended", other.ID)
}

func keptRedacted(w *world) {
	d, sub := w.one()
	c := w.claimOne()
	w.equal(w.keep(c, "secret"), "secret", "what is kept")
	w.redact(history.RedactParams{Object: d.Object})
	w.equal(w.keep(c, ""), "", "what is kept after the redaction")
	w.equal(w.keep(c, "secret"), "", "what is kept of a redacted event")
	w.equal(len(w.delivery(d.ID, sub).Body), 0, "length of the delivery's body")
}

func keptPruned(w *world) {
	w.one()
	c := w.claimOne()
	w.keep(c, "old")
	w.record(result(c, sender.ClassNone))
	w.Advance(time.Hour)
	w.equal(w.prune(ages{delivered: time.Minute, events: time.Minute}).Events, 1, "events pruned")
	w.equal(w.keep(c, ""), "", "what is kept of a pruned event")
}
