package storetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/filter"
	"github.com/surehook/surehook/sender/history"
)

func filterRules() []rule {
	return []rule{
		{"is stored", "A subscription is read with the filter that it was created or updated with, or without one.", filterStored},
		{"decides by content", "Of the events that sender.Matches gives it, a subscription with a filter gets those whose bodies its filter matches, and one without a filter gets all.", filterDecides},
		{"many events", "However many events one step expands, each is decided by its own body.", filterMany},
		{"by the payload version", "A filter is asked about the body that its subscription gets: that of the payload version which it is pinned to when the event is expanded. Each is made once, however many subscriptions get it. If it cannot be made, the event gets there.", filterVersions},
		{"large bodies", "The size of a body changes nothing about who gets the event: each is decided, once, and all are expanded in the end.", filterLargeBodies},
		{"in chunks", "An event for many subscriptions with filters is expanded in parts, each of which asks a bounded number of them.", filterChunks},
		{"not of what is addressed", "An event that is addressed to one subscription gets there whatever its filter says.", filterAddressed},
		{"the one that is stored at the expansion", "An event is decided by the filter that is stored when it is expanded. What was decided stays.", filterUpdated},
		{"update, rolled back", "An update that rolled back leaves the filter as it was.", filterRolledBack},
		{"changed all the time", "However often its filter is changed, a subscription does not keep the events of others from being expanded.", filterChanging},
		{"redacted", "An event that was redacted before it was expanded matches no filter.", filterRedacted},
		{"held", "A paused subscription holds what its filter matches, and nothing else.", filterHeld},
	}
}

// filtered is a subscription with a filter.
func (w *world) filtered(owner, expression string, types ...string) sender.Subscription {
	s := w.subscription(owner, types...)
	s.Filter = filter.Read(expression)
	w.noError(s.Filter.Unreadable(), "parsing %s", expression)
	return s
}

// subscribeFiltered registers a subscription with a filter and returns its id.
func (w *world) subscribeFiltered(owner, expression string, types ...string) string {
	w.Helper()
	s := w.filtered(owner, expression, types...)
	w.inTx(func(tx any) error { return w.Store.CreateSubscriptionTx(w.ctx, tx, s) })
	return s.ID
}

// draftWith is an event with data.
func (w *world) draftWith(eventType, data string) sender.Draft {
	d := w.draft(eventType)
	d.BodyTail = []byte(`,"data":` + data + `}`)
	return d
}

func filterStored(w *world) {
	s := w.filtered(w.subscriber(), `{"data.status":"paid","not":{"data.a\\.b":{"in":[1.50,"x\u0000",null]}}}`, "a.*")
	w.inTx(func(tx any) error { return w.Store.CreateSubscriptionTx(w.ctx, tx, s) })
	plain := w.subscribe(s.Subscriber, "a.*")
	same := func() {
		w.Helper()
		w.sameSubscription(w.read(s.ID), s)
		page, _, err := w.Store.Subscriptions(w.ctx, sender.SubscriptionQuery{Subscriber: s.Subscriber, Limit: 10})
		w.noError(err, "listing")
		w.equal(len(page), 2, "subscriptions")
		w.sameSubscription(page[0], s)
		w.check(w.read(plain).Filter == nil, "a subscription that was given no filter has one")
	}
	same()
	s.Filter = filter.Read(`{"or":[{"data.x":{"gte":1,"lt":2}},{"object.id":{"prefix":"ü"}}]}`)
	w.update(s)
	same()
	s.Filter = nil
	w.update(s)
	same()
}

func filterDecides(w *world) {
	a, b := w.subscriber(), w.subscriber()
	w.createSubscriber(sender.Operator)
	var subs []sender.Subscription
	for _, owner := range []string{a, b, sender.Operator} {
		for _, expression := range []string{
			"", `{"data.status":"paid"}`, `{"data.amount":{"gt":9007199254740992}}`, `{"data.tags":{"in":["x","y"]}}`, `{"not":{"data.status":{"exists":true}}}`, `{"object.id":{"exists":true}}`,
		} {
			for _, types := range [][]string{{"*"}, {"a.b", "a.*"}, {"c"}} {
				s := w.filtered(owner, expression, types...)
				w.inTx(func(tx any) error { return w.Store.CreateSubscriptionTx(w.ctx, tx, s) })
				subs = append(subs, s)
			}
		}
	}
	var drafts []sender.Draft
	for _, data := range []string{`{"status":"paid"}`, `{"status":"open","amount":9007199254740993,"tags":["z","y"]}`, `{"amount":9007199254740992}`, `null`} {
		for _, to := range []string{"", a} {
			for _, eventType := range []string{"a.b", "c", "d"} {
				d := w.draftWith(eventType, data)
				d.Subscriber = to
				drafts = append(drafts, d)
			}
		}
	}
	drafts = append(drafts, w.draft("a.b")) // without data
	w.publish(drafts...)
	made := w.expand()
	all := 0
	for _, d := range drafts {
		var want, got []string
		for _, s := range subs {
			if sender.Matches(s, d.Type, d.Subscriber, "", "") && s.Filter.Match(d.Body(1)) {
				want = append(want, s.ID)
			}
		}
		for _, delivery := range w.list(history.DeliveryQuery{Event: d.ID}) {
			got = append(got, delivery.Subscription)
		}
		slices.Sort(got)
		slices.Sort(want)
		w.equal(got, want, "subscriptions that got %s", d.Body(1))
		all += len(want)
	}
	w.equal(made, all, "deliveries that Expanded counts")
}

func filterMany(w *world) {
	sub := w.subscribeFiltered(w.subscriber(), `{"data.n":{"lt":100}}`, "*")
	var drafts, want []sender.Draft
	for i := range 200 { // those that match stand together and among others
		n := i * 37 % 200
		if i < 50 {
			n = i
		}
		d := w.draftWith("a.b", fmt.Sprintf(`{"n":%d}`, n))
		if drafts = append(drafts, d); n < 100 {
			want = append(want, d)
		}
	}
	w.publish(drafts...)
	x := w.expandOnce(dispatch.ExpandParams{Events: len(drafts), Deliveries: len(drafts)})
	w.equal(x.Deliveries, len(want), "deliveries of one step")
	w.equal(w.events(sub), sorted(want...), "events delivered")
}

// versionDates are the payload versions of some events: the data of each has a member of its name.
var versionDates = []string{"2026-01-01", "2026-02-01", "2026-03-01"}

// downTo makes older versions of data: a sender.Convert.
func downTo(eventType, from, date string, data json.RawMessage) (string, json.RawMessage, error) {
	switch eventType {
	case "a.fails":
		return "", nil, errors.New("it cannot be made")
	case "a.panics":
		panic("it cannot be made")
	}
	to := versionDates[0]
	for _, version := range versionDates {
		if version <= date {
			to = version
		}
	}
	return to, bytes.Replace(data, []byte(from), []byte(to), 1), nil
}

func filterVersions(w *world) {
	owner := w.subscriber()
	var subs []sender.Subscription
	pins := []string{"2026-02-01", "", "2025-01-01", "2026-02-15", "2026-01-01", "2026-03-01", "2027-01-01"}
	for _, pinned := range pins {
		for _, expression := range []string{"", `{"data.2026-01-01":{"gte":1}}`, `{"data.2026-02-01":1}`, `{"data.2026-03-01":{"exists":true}}`} {
			s := w.filtered(owner, expression, "a.*")
			s.Settings.PayloadVersion = pinned
			w.inTx(func(tx any) error { return w.Store.CreateSubscriptionTx(w.ctx, tx, s) })
			subs = append(subs, s)
		}
	}
	calls := 0
	counted := func(eventType, from, date string, data json.RawMessage) (string, json.RawMessage, error) {
		calls++
		return downTo(eventType, from, date, data)
	}
	wants := func(convert sender.Convert, s *sender.Subscription, d *sender.Draft) bool {
		body, _, err := convert.Body(d.Type, d.Body(1), s.Settings.PayloadVersion)
		return err != nil || s.Filter.Match(body)
	}
	for _, p := range []dispatch.ExpandParams{{Events: 1000, Deliveries: 1000, Convert: counted}, {Events: 3, Deliveries: 5, Convert: counted}, {Events: 1000, Deliveries: 1000}} {
		var drafts []sender.Draft
		for _, eventType := range []string{"a.b", "a.fails", "a.panics"} {
			for i, published := range []string{versionDates[2], versionDates[1], ""} {
				for _, size := range []int{1, 3000, 40_000} {
					d := w.draftWith(eventType, fmt.Sprintf(`{%q:%d,"filler":%q}`, published, 1+i%2, strings.Repeat("x", size)))
					if published != "" {
						d.BodyTail = append([]byte(`,"payload_version":"`+published+`"`), d.BodyTail...)
					}
					drafts = append(drafts, d)
				}
			}
		}
		thin := w.draft("a.b")
		thin.BodyTail = []byte(`,"payload_version":"2026-03-01"}`)
		drafts = append(drafts, thin)
		w.publish(drafts...)
		calls = 0
		w.expandBy(p)
		if p.Deliveries == 1000 {
			w.check(calls <= len(drafts)*len(pins), "%d conversions of %d events for %d payload versions", calls, len(drafts), len(pins))
		}
		for i := range drafts {
			var want, got []string
			for j := range subs {
				if wants(p.Convert, &subs[j], &drafts[i]) {
					want = append(want, subs[j].ID)
				}
			}
			for _, delivery := range w.list(history.DeliveryQuery{Event: drafts[i].ID}) {
				got = append(got, delivery.Subscription)
			}
			slices.Sort(got)
			slices.Sort(want)
			w.equal(got, want, "subscriptions that got event %d, %s, by %+v", i, drafts[i].Type, p.Events)
		}
	}

	s := w.filtered(owner, `{"data.2026-03-01":5}`, "c")
	s.Settings.PayloadVersion = versionDates[0]
	w.inTx(func(tx any) error { return w.Store.CreateSubscriptionTx(w.ctx, tx, s) })
	publish := func() sender.Draft {
		d := w.draft("c")
		d.BodyTail = []byte(`,"payload_version":"2026-03-01","data":{"2026-03-01":5}}`)
		w.publish(d)
		return d
	}
	all := dispatch.ExpandParams{Events: 10, Deliveries: 10, Convert: downTo}
	publish()
	w.expandBy(all)
	w.equal(w.events(s.ID), []string{}, "events in the oldest version")
	later := publish()
	s.Settings.PayloadVersion = versionDates[2]
	w.update(s)
	w.expandBy(all)
	w.equal(w.events(s.ID), sorted(later), "events once it is pinned to the newest version")
}

func filterLargeBodies(w *world) {
	owner := w.subscriber()
	paid, rest := w.subscribeFiltered(owner, `{"data.status":"paid"}`, "*"), w.subscribe(owner, "*")
	var drafts, want []sender.Draft
	for i, size := range []int{10, 5000, 300_000, 40_000, 10, 1_000_000, 3000, 2000, 100_000, 50, 1_500_000, 1_500_000, 1_500_000, 10} {
		status := []string{"paid", "open"}[i%2]
		d := w.draftWith("a.b", fmt.Sprintf(`{"filler":%q,"status":%q}`, strings.Repeat("x", size), status))
		if drafts = append(drafts, d); status == "paid" {
			want = append(want, d)
		}
	}
	for _, d := range drafts {
		w.publish(d)
	}
	w.equal(w.expand(), len(drafts)+len(want), "deliveries made")
	w.equal(w.events(paid), sorted(want...), "events of the subscription with a filter")
	w.equal(w.events(rest), sorted(drafts...), "events of the one without")
	w.equal(w.expand(), 0, "deliveries made afterwards")
}

func filterChunks(w *world) {
	owner := w.subscriber()
	var want []string
	for i := range 40 {
		id := w.subscribeFiltered(owner, fmt.Sprintf(`{"data.n":{"in":[%d,7]}}`, i%4), "*")
		if i%4 == 1 {
			want = append(want, id)
		}
	}
	nobody, some := w.draftWith("a.b", `{"n":5}`), w.draftWith("a.b", `{"n":1,"filler":"`+strings.Repeat("x", 5000)+`"}`)
	w.publish(nobody, some)
	made := w.expandBy(dispatch.ExpandParams{Events: 2, Deliveries: 3})
	w.equal(made, len(want), "deliveries made")
	var got []string
	for _, d := range w.list(history.DeliveryQuery{}) {
		w.equal(d.Event.ID, some.ID, "event")
		got = append(got, d.Subscription)
	}
	slices.Sort(got)
	slices.Sort(want)
	w.equal(got, want, "subscriptions")
}

func filterAddressed(w *world) {
	owner := w.subscriber()
	sub := w.subscribeFiltered(owner, `{"data.status":"paid"}`, "*")
	toOne, toOwner := w.draftWith("a.b", `{"status":"open"}`), w.draftWith("a.b", `{"status":"open"}`)
	toOne.Subscriber, toOne.Subscription, toOwner.Subscriber = owner, sub, owner
	w.publish(toOne, toOwner)
	w.expand()
	w.equal(w.events(sub), sorted(toOne), "events delivered")
}

func filterUpdated(w *world) {
	owner := w.subscriber()
	sub := w.subscribeFiltered(owner, `{"data.n":1}`, "*")
	set := func(expression string) {
		s := w.read(sub)
		s.Filter = filter.Read(expression)
		w.update(s)
	}
	one, two := w.draftWith("a.b", `{"n":1}`), w.draftWith("a.b", `{"n":2}`)
	w.publish(one, two)
	w.expand()
	w.equal(w.events(sub), sorted(one), "events before the update")

	three, four := w.draftWith("a.b", `{"n":1}`), w.draftWith("a.b", `{"n":2}`)
	w.publish(three, four)
	set(`{"data.n":2}`)
	w.expand()
	w.equal(w.events(sub), sorted(one, four), "events after an update between publishing and expanding")

	five := w.draftWith("a.b", `{"n":3}`)
	w.publish(five)
	set("")
	w.expand()
	w.equal(w.events(sub), sorted(one, four, five), "events without a filter")
}

func filterRolledBack(w *world) {
	sub := w.subscribeFiltered(w.subscriber(), `{"data.n":1}`, "*")
	before := w.read(sub)
	w.undone(func(tx any) error {
		s := before
		s.Filter = filter.Read(`{"data.n":2}`)
		return w.Store.UpdateSubscriptionTx(w.ctx, tx, s)
	})
	w.equal(w.read(sub), before, "subscription after an update that rolled back")
	one, two := w.draftWith("a.b", `{"n":1}`), w.draftWith("a.b", `{"n":2}`)
	w.publish(one, two)
	w.expand()
	w.equal(w.events(sub), sorted(one), "events delivered")
}

func filterChanging(w *world) {
	owner := w.subscriber()
	restless, other := w.subscribeFiltered(owner, `{"data.n":0}`, "*"), w.subscribe(owner, "*")
	var drafts []sender.Draft
	for range 3 {
		drafts = append(drafts, w.draftWith("a.b", `{"n":1,"filler":"`+strings.Repeat("x", 20_000)+`"}`))
	}
	w.publish(drafts...)
	for i := 0; ; i++ {
		x, _, err := w.Store.Step(w.ctx, dispatch.ExpandParams{Events: 10, Deliveries: 10}, dispatch.Batch{})
		w.noError(err, "expanding")
		if !x.More {
			break
		}
		w.check(i < 20, "three events are not expanded after %d steps", i)
		s := w.read(restless)
		s.Filter = filter.Read(fmt.Sprintf(`{"data.n":{"gt":%d}}`, i+2))
		w.update(s)
	}
	w.equal(w.events(other), sorted(drafts...), "events of the other one")
	w.equal(w.events(restless), []string{}, "events of the one whose filter changes")
}

func filterRedacted(w *world) {
	owner := w.subscriber()
	sub := w.subscribeFiltered(owner, `{"not":{"data.n":1}}`, "*")
	d, kept := w.draftWith("a.b", `{"n":2}`), w.draftWith("a.b", `{"n":2}`)
	w.publish(d, kept)
	_, err := w.Store.Redact(w.ctx, history.RedactParams{Object: d.Object, Limit: 10})
	w.noError(err, "redacting")
	w.equal(w.expand(), 1, "deliveries made")
	w.equal(w.events(sub), sorted(kept), "events delivered")
}

func filterHeld(w *world) {
	owner := w.subscriber()
	sub := w.subscribeFiltered(owner, `{"data.n":1}`, "*")
	w.inTx(func(tx any) error {
		return w.Store.HoldSubscriptionTx(w.ctx, tx, sub, sender.SubscriptionPaused, "")
	})
	one, two := w.draftWith("a.b", `{"n":1}`), w.draftWith("a.b", `{"n":2}`)
	w.publish(one, two)
	w.expand()
	w.equal(w.read(sub).Backlog, int64(1), "Backlog")
	w.inTx(func(tx any) error { return w.Store.ResumeSubscriptionTx(w.ctx, tx, sub, sender.Resume{}) })
	w.expand()
	w.equal(w.claimOne().Event.ID, one.ID, "the event that is claimed after the resume")
}
