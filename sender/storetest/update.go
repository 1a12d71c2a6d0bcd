package storetest

import (
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
)

func updateRules() []rule {
	return []rule{
		{"update", "An update stores the URL, the types, the description and the settings, and nothing else.", updateStores},
		{"update, rolled back", "An update that rolled back changes nothing, the filter included.", updateRolledBack},
		{"update, target", "Attempts that are claimed after an update go to the new URL under the new settings.", updateTarget},
		{"update, what was expanded", "Deliveries that were made before an update stay, whatever the new filter says.", updateExpanded},
		{"update, what is asked for no more", "An event that was committed before an update, and is expanded after it, is not delivered if the new filter does not ask for it.", updateDropped},
		{"update, what is asked for anew", "A pattern that an update adds selects events that are committed later; one that it keeps selects earlier ones, too.", updateAnew},
		{"update, asked for again", "A pattern that is removed and added again counts as added anew.", updateAgain},
		{"update, addressed events", "An event that is addressed to the subscription gets there whatever was updated.", updateAddressed},
	}
}

func customSettings() sender.Settings {
	return sender.Settings{
		Headers: map[string]string{"X-Tenant": "a'b\"c ü", "Authorization": "\x01sealed"}, MaxInFlight: 7, Rate: 2.5,
		Timeout: 1500 * time.Millisecond, Proxy: "eu", SealedCertificate: []byte("\x00\xff certificate"),
		RetryDelays: []time.Duration{time.Minute, 3 * time.Hour}, Horizon: 40 * time.Hour, DisableAfter: sender.NeverDisable, Gone: sender.GoneStops,
	}
}

func updateStores(w *world) {
	created := w.subscription(w.subscriber(), "*")
	created.Settings = sender.Settings{Headers: map[string]string{"A": "1"}, MaxInFlight: 3}
	w.inTx(func(tx any) error { return w.Store.CreateSubscriptionTx(w.ctx, tx, created) })
	w.sameSubscription(w.read(created.ID), created)
	other := w.subscribe(created.Subscriber, "*")
	untouched := w.read(other)

	changed := created
	changed.URL, changed.EventTypes, changed.Description, changed.Settings = "https://example.com/new?a='%", []string{"x.y", "a.*"}, "of me 🔑", customSettings()
	given := changed
	given.Subscriber, given.CreatedAt, given.Status = "sub_other", createdAt.Add(time.Hour), sender.SubscriptionPaused
	given.Backlog, given.DeadLettered, given.DisabledReason, given.Health.Streak = 5, 6, "none", 7
	w.update(given)
	w.sameSubscription(w.read(created.ID), changed)
	w.equal(w.read(other), untouched, "another subscription")

	changed.Settings, changed.Description = sender.Settings{}, ""
	w.update(changed)
	w.sameSubscription(w.read(created.ID), changed)

	for _, id := range []string{"wsub_unknown", other} {
		if id == other {
			w.unsubscribe(other)
		}
		given.ID = id
		w.errorIs(w.try(func(tx any) error { return w.Store.UpdateSubscriptionTx(w.ctx, tx, given) }), sender.ErrNotFound, "updating %s", id)
	}
}

func updateRolledBack(w *world) {
	sub := w.subscribe(w.subscriber(), "a.*")
	before := w.read(sub)
	waiting := w.draft("a.b")
	w.publish(waiting)
	w.undone(func(tx any) error {
		s := before
		s.URL, s.EventTypes, s.Settings = "https://example.com/new", []string{"x"}, customSettings()
		return w.Store.UpdateSubscriptionTx(w.ctx, tx, s)
	})
	w.equal(w.read(sub), before, "subscription after an update that rolled back")
	later := w.draft("a.b")
	w.publish(later, w.draft("x"))
	w.expand()
	w.equal(w.events(sub), sorted(waiting, later), "events delivered")
	w.equal(w.claim(1)[0].Target.URL, before.URL, "URL")
}

func updateTarget(w *world) {
	_, sub := w.one()
	first := w.claimOne()
	w.check(first.Target.Settings == nil || len(first.Target.Settings.Headers)+first.Target.Settings.MaxInFlight == 0, "Target of a subscription without settings has %+v", first.Target.Settings)
	s := w.read(sub)
	old := s.URL
	s.URL, s.Settings = "https://example.com/new", customSettings()
	w.update(s)
	w.equal(first.Target.URL, old, "URL of the attempt that was in flight at the update")
	w.record(result(first, sender.ClassTimeout))
	w.Advance(retryDelay(1))
	second := w.claimOne()
	w.equal(second.Target.URL, s.URL, "URL of the attempt after the update")
	w.check(second.Target.Settings != nil, "Target without Settings")
	w.equal(*second.Target.Settings, s.Settings, "Settings of the attempt after the update")
	w.equal(w.list(history.DeliveryQuery{Subscription: sub})[0].URL, s.URL, "URL of the delivery")
}

func updateExpanded(w *world) {
	sub := w.subscribe(w.subscriber(), "a.*")
	d := w.draft("a.b")
	w.publish(d)
	w.expand()
	w.ask(sub, "x")
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusPending: 1}, "statuses after the update")
	w.record(result(w.claimOne(), sender.ClassNone))
	w.equal(w.delivery(d.ID, sub).Status, sender.StatusDelivered, "status")
}

func updateDropped(w *world) {
	sub := w.subscribe(w.subscriber(), "a.*", "b")
	kept := w.draft("b")
	w.publish(w.draft("a.b"), kept)
	w.ask(sub, "b", "c")
	w.publish(w.draft("a.b"))
	w.equal(w.expand(), 1, "deliveries made")
	w.equal(w.events(sub), sorted(kept), "events delivered")
}

func updateAnew(w *world) {
	sub := w.subscribe(w.subscriber(), "a.*", "b")
	before := []sender.Draft{w.draft("b"), w.draft("c"), w.draft("a.b")}
	w.publish(before...)
	w.ask(sub, "c", "b", "a.b") // a.* selected a.b before, but is another pattern
	after := []sender.Draft{w.draft("b"), w.draft("c"), w.draft("a.b"), w.draft("a.c")}
	w.publish(after...)
	w.equal(w.expand(), 4, "deliveries made")
	w.equal(w.events(sub), sorted(before[0], after[0], after[1], after[2]), "events delivered")

	w.ask(sub, "*")
	late := w.draft("anything")
	w.publish(late)
	w.ask(sub, "*") // the same filter: nothing is new in it
	w.expand()
	w.equal(w.events(sub), sorted(before[0], after[0], after[1], after[2], late), "events delivered after an update that changed no pattern")
}

func updateAgain(w *world) {
	sub := w.subscribe(w.subscriber(), "a", "b")
	both := []sender.Draft{w.draft("a"), w.draft("b")}
	w.publish(both...)
	w.ask(sub, "b")
	between := w.draft("a")
	w.publish(between)
	w.ask(sub, "a", "b")
	late := w.draft("a")
	w.publish(late)
	w.expand()
	w.equal(w.events(sub), sorted(both[1], late), "events delivered")
}

func updateAddressed(w *world) {
	owner := w.subscriber()
	sub := w.subscribe(owner, "a")
	before, after := w.addressed(owner, sub), w.addressed(owner, sub)
	w.publish(before)
	w.ask(sub, "x")
	w.publish(after)
	w.expand()
	w.equal(w.events(sub), sorted(before, after), "events delivered")
}
