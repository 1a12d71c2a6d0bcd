package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/feed"
	"github.com/surehook/surehook/sender/history"
)

func feedRules() []rule {
	return []rule{
		{"order", "Going on after the last position yields each event once, in the order of the commits, with its exact body; positions rise, and Head is the last.", feedOrder},
		{"viewers", "A viewer sees what is addressed to them or to nobody in particular; the operator sees all.", feedViewers},
		{"late commits", "An event whose transaction commits late comes after what was read before, though it was written first.", feedLate},
		{"rolled back", "Events that were rolled back are not in the feed, and hold up none that follow.", feedRolledBack},
		{"bounded", "A page has up to Limit events, and ends before the body that makes it larger than Bytes, but never before its first.", feedBounded},
		{"many candidates", "A page that has looked at many events that the viewer may not see says how far it has looked; going on finds the one behind them.", feedMany},
		{"pruned", "Pruned is the highest position of an event that was pruned; what is kept below it is still there, and Head stays.", feedPruned},
		{"redacted", "A redacted event is in the feed, without a body; one that was redacted before it was expanded, too.", feedRedacted},
		{"event", "Event and Feed tell a feed.Reader who may see an event: it is read by id by them; to others it is ErrNotFound.", feedOneEvent},
		{"refused", "An empty viewer, a negative position and a limit out of bounds are ErrInvalid; an unknown or deleted viewer is ErrNotFound.", feedRefused},
	}
}

// feed reads one page, and ends the test if it contradicts itself.
func (w *world) feed(q feed.StoreQuery) feed.StorePage {
	w.Helper()
	p, err := w.Store.Feed(w.ctx, q)
	w.noError(err, "reading the feed after %d", q.After)
	w.check(len(p.Events) <= q.Limit, "a page has %d events, at most %d were asked for", len(p.Events), q.Limit)
	w.check(p.Last >= q.After, "a page after %d has looked up to %d", q.After, p.Last)
	last := q.After
	for _, e := range p.Events {
		w.check(e.Position > last && e.Position <= p.Last && e.Position <= p.Head, "position %d follows %d, of a page up to %d of a feed up to %d", e.Position, last, p.Last, p.Head)
		last = e.Position
	}
	return p
}

// follow reads the feed to its end and returns its last position.
func (w *world) follow(q feed.StoreQuery) (all []feed.Item, end int64) {
	w.Helper()
	for range plenty {
		p := w.feed(q)
		all = append(all, p.Events...)
		if q.After = p.Last; p.Last >= p.Head {
			return all, p.Last
		}
	}
	w.Fatal("the feed does not come to an end")
	return nil, 0
}

// idsOf returns the ids of events, in their order.
func idsOf(events []feed.Item) []string {
	ids := []string{}
	for _, e := range events {
		ids = append(ids, e.ID)
	}
	return ids
}

// inOrder are the ids of drafts.
func inOrder(drafts ...sender.Draft) []string {
	ids := []string{}
	for _, d := range drafts {
		ids = append(ids, d.ID)
	}
	return ids
}

func feedOrder(w *world) {
	empty := w.feed(feed.StoreQuery{Viewer: sender.Operator, Limit: 1})
	w.equal(empty, feed.StorePage{}, "page of an empty feed")
	owner := w.subscriber()
	sub := w.subscribe(owner, "*")
	var drafts []sender.Draft
	published := map[string]time.Time{}
	for i := range 11 {
		d := w.draft("a.b")
		if i%3 == 0 {
			d = w.addressed(owner, sub)
		}
		d.Version = int64(i + 5)
		published[d.ID] = w.now()
		w.publish(d)
		drafts = append(drafts, d)
		if i%4 == 3 { // some events are expanded one by one, others together
			w.expand()
		}
		w.Advance(time.Second)
	}
	w.expand()
	for _, limit := range []int{1, 4, feed.MaxPage} {
		for _, viewer := range []string{owner, sender.Operator} {
			all, end := w.follow(feed.StoreQuery{Viewer: viewer, Limit: limit})
			w.equal(idsOf(all), inOrder(drafts...), "the feed, read by %d", limit)
			w.equal(end, int64(len(drafts)), "the last position, if none was given but to these")
			for i, e := range all {
				d := drafts[i]
				w.sameEvent(e.EventInfo, d, published[d.ID])
				w.sameBody(e.Body, d, d.Version)
				w.equal([]any{e.Version, e.Subscriber, e.Subscription, e.Redacted}, []any{d.Version, d.Subscriber, d.Subscription, false}, "the rest of event %d", i)
			}
			heads, _ := w.follow(feed.StoreQuery{Viewer: viewer, Limit: limit, Heads: true})
			w.equal(idsOf(heads), inOrder(drafts...), "the heads of the feed")
			for _, e := range heads {
				w.check(e.Body == nil, "the head of event %s has a body", e.ID)
			}
		}
	}
}

func feedViewers(w *world) {
	one, two := w.subscriber(), w.subscriber()
	sub := w.subscribe(two, "only.addressed")
	everyone, toOne, toTwo, toSub := w.draft("a.b"), w.draft("a.b"), w.draft("a.b"), w.addressed(two, sub)
	toOne.Subscriber, toTwo.Subscriber = one, two
	w.publish(everyone, toOne, toTwo, toSub)
	w.expand()
	for viewer, want := range map[string][]string{
		one:             inOrder(everyone, toOne),
		two:             inOrder(everyone, toTwo, toSub),
		sender.Operator: inOrder(everyone, toOne, toTwo, toSub),
	} {
		for _, limit := range []int{1, 100} {
			all, _ := w.follow(feed.StoreQuery{Viewer: viewer, Limit: limit})
			w.equal(idsOf(all), want, "what %s sees", viewer)
		}
	}
}

func feedLate(w *world) {
	viewer := w.subscriber()
	early, late := w.draft("a.b"), w.draft("a.b")
	tx, commit, _ := w.Begin(w.T)
	_, err := w.Store.PublishTx(w.ctx, tx, []sender.Draft{early})
	w.noError(err, "publishing")
	var read []feed.Item
	after := int64(0)
	if w.ConcurrentWriters {
		w.publish(late)
		w.expand()
		read, after = w.follow(feed.StoreQuery{Viewer: viewer, Limit: 10})
		w.equal(idsOf(read), inOrder(late), "the feed, while a transaction that wrote before is open")
		w.noError(commit(), "committing")
	} else {
		w.noError(commit(), "committing")
		w.expand()
		read, after = w.follow(feed.StoreQuery{Viewer: viewer, Limit: 10})
		w.publish(late)
	}
	w.expand()
	rest, _ := w.follow(feed.StoreQuery{Viewer: viewer, Limit: 10, After: after})
	w.equal(sorted(early, late), slices.Sorted(slices.Values(append(idsOf(read), idsOf(rest)...))), "what was read before and after the commit")
}

func feedRolledBack(w *world) {
	first, undone, last := w.draft("a.b"), w.draft("a.b"), w.draft("a.b")
	w.publish(first)
	tx, _, rollback := w.Begin(w.T)
	_, err := w.Store.PublishTx(w.ctx, tx, []sender.Draft{undone})
	w.noError(err, "publishing")
	w.noError(rollback(), "rolling back")
	w.expand()
	read, after := w.follow(feed.StoreQuery{Viewer: sender.Operator, Limit: 10})
	w.equal(idsOf(read), inOrder(first), "the feed after a roll-back")
	w.publish(last)
	w.expand()
	read, _ = w.follow(feed.StoreQuery{Viewer: sender.Operator, Limit: 10, After: after})
	w.equal(idsOf(read), inOrder(last), "what follows the roll-back")
}

func feedBounded(w *world) {
	viewer := w.subscriber()
	var drafts []sender.Draft
	for i := range 6 {
		d := w.draft("a.b")
		d.BodyTail = fmt.Appendf(nil, `,"data":"%0*d"}`, 1000, i)
		drafts = append(drafts, d)
	}
	w.publish(drafts...)
	w.expand()
	size := len(drafts[0].Body(1))
	for _, viewer := range []string{viewer, sender.Operator} {
		for _, c := range []struct{ bytes, limit, want int }{
			{0, 4, 4}, {3 * size, 6, 3}, {3*size - 1, 6, 2}, {1, 6, 1}, {100 * size, 6, 6}, {3 * size, 2, 2},
		} {
			for _, heads := range []bool{false, true} {
				p := w.feed(feed.StoreQuery{Viewer: viewer, Limit: c.limit, Bytes: c.bytes, Heads: heads})
				w.equal(idsOf(p.Events), inOrder(drafts[:c.want]...), "a page of up to %d events and %d bytes of bodies of %d", c.limit, c.bytes, size)
				w.equal(p.Last, p.Events[c.want-1].Position, "how far it has looked")
			}
		}
		all, _ := w.follow(feed.StoreQuery{Viewer: viewer, Limit: 6, Bytes: size})
		w.equal(idsOf(all), inOrder(drafts...), "the feed in pages of one body")
	}
}

func feedMany(w *world) {
	owner, viewer := w.subscriber(), w.subscriber()
	w.backlog(owner, w.subscribe(owner, "only.addressed"), history.MaxExamined+700)
	rare := w.draft("a.b")
	rare.Subscriber = viewer
	w.publish(rare)
	w.expand()
	p := w.feed(feed.StoreQuery{Viewer: viewer, Limit: 1})
	w.check(p.Last > 0 && p.Last < p.Head, "a page has looked at %d of %d events", p.Last, p.Head)
	all, _ := w.follow(feed.StoreQuery{Viewer: viewer, Limit: 1})
	w.equal(idsOf(all), inOrder(rare), "the feed behind many events of others")
	w.equal(w.feed(feed.StoreQuery{Viewer: viewer, Limit: 1, After: all[0].Position}).Last, all[0].Position, "how far the page after the end has looked")
}

func feedPruned(w *world) {
	viewer := w.subscriber()
	sub := w.subscribe(viewer, "kept")
	w.pause(sub)
	gone, kept, alsoGone, fresh := w.draft("a.b"), w.draft("kept"), w.draft("a.b"), w.draft("a.b")
	w.publish(gone, kept, alsoGone)
	w.expand()
	w.Advance(time.Hour)
	w.prune(ages{events: time.Minute})
	all, after := w.follow(feed.StoreQuery{Viewer: viewer, Limit: 1})
	w.equal(idsOf(all), inOrder(kept), "the feed after it was pruned")
	p := w.feed(feed.StoreQuery{Viewer: viewer, Limit: 10})
	w.equal([]int64{p.Pruned, p.Head, p.Last, after}, []int64{3, 3, 3, 3}, "Pruned, Head and Last after events 1 and 3 of 3 were pruned")
	w.publish(fresh)
	w.expand()
	p = w.feed(feed.StoreQuery{Viewer: viewer, Limit: 10, After: after})
	w.equal(idsOf(p.Events), inOrder(fresh), "what follows what was pruned")
	w.equal([]int64{p.Pruned, p.Head}, []int64{3, 4}, "Pruned and Head")
	w.prune(ages{events: time.Minute})
	w.equal(w.feed(feed.StoreQuery{Viewer: viewer, Limit: 10}).Pruned, int64(3), "Pruned after a pass that found nothing")
}

func feedRedacted(w *world) {
	viewer := w.subscriber()
	before, after := w.draft("a.b"), w.draft("a.b")
	after.Object = before.Object
	w.publish(before)
	w.expand()
	w.publish(after)
	w.redact(history.RedactParams{Object: before.Object})
	w.expand()
	all, _ := w.follow(feed.StoreQuery{Viewer: viewer, Limit: 10})
	w.equal(idsOf(all), inOrder(before, after), "the feed after a redaction")
	for _, e := range all {
		w.check(e.Redacted && e.Body == nil, "event %s: Redacted %t with a body of %d bytes", e.ID, e.Redacted, len(e.Body))
	}
	e, err := w.Store.Event(w.ctx, before.ID)
	w.noError(err, "reading a redacted event")
	w.check(e.Redacted && e.Body == nil, "by its id: Redacted %t with a body of %d bytes", e.Redacted, len(e.Body))
}

func feedOneEvent(w *world) {
	reader, err := feed.NewReader(w.Store, nil)
	w.noError(err, "making a reader")
	one, two := w.subscriber(), w.subscriber()
	everyone, toOne := w.draft("a.b"), w.draft("a.b")
	toOne.Subscriber, toOne.Version = one, 7
	at := w.now()
	w.publish(everyone, toOne)
	for _, viewer := range []string{one, sender.Operator} {
		e, err := reader.Event(w.ctx, viewer, toOne.ID)
		w.noError(err, "reading an event")
		w.sameEvent(e.EventInfo, toOne, at)
		w.sameBody(e.Body, toOne, 7)
		w.equal([]any{e.Version, e.Subscriber}, []any{int64(7), one}, "version and addressee")
	}
	_, err = reader.Event(w.ctx, two, everyone.ID)
	w.noError(err, "reading an event that is for everyone")
	for viewer, id := range map[string]string{two: toOne.ID, one: "evt_", sender.Operator: "\x00", "sub_unknown": everyone.ID} {
		_, err := reader.Event(w.ctx, viewer, id)
		w.errorIs(err, sender.ErrNotFound, "reading event %q as %s", id, viewer)
	}
	_, err = reader.Event(w.ctx, "", everyone.ID)
	w.errorIs(err, sender.ErrInvalid, "reading an event as nobody")
}

func feedRefused(w *world) {
	viewer, gone := w.subscriber(), w.subscriber()
	w.inTx(func(tx any) error { return w.Store.DeleteSubscriberTx(w.ctx, tx, gone) })
	for _, q := range []feed.StoreQuery{
		{Limit: 1}, {Viewer: viewer}, {Viewer: viewer, Limit: -1}, {Viewer: viewer, Limit: feed.MaxPage + 1}, {Viewer: viewer, Limit: 1, After: -1},
	} {
		_, err := w.Store.Feed(w.ctx, q)
		w.errorIs(err, sender.ErrInvalid, "reading the feed by %+v", q)
	}
	for _, unknown := range []string{gone, "sub_unknown", "0", "\x00"} {
		_, err := w.Store.Feed(w.ctx, feed.StoreQuery{Viewer: unknown, Limit: 1})
		w.errorIs(err, sender.ErrNotFound, "reading the feed as %q", unknown)
	}
	p := w.feed(feed.StoreQuery{Viewer: viewer, Limit: 1, After: 99})
	w.equal(p, feed.StorePage{Last: 99}, "a page after what there is")
}
