package storetest

import (
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/replay"
)

// answered is a result with a status code.
func answered(c dispatch.Claimed, class sender.Class, code int) dispatch.Result {
	r := result(c, class)
	r.StatusCode = code
	return r
}

// deadLetters makes dead letters: one for each code, or for each class if the code is 0.
func (w *world) deadLetters(owner, sub string, codes ...int) {
	w.Helper()
	w.decide = func(_ dispatch.Live, h sender.Health, _ dispatch.Result, _ time.Time) dispatch.Decision {
		return dispatch.Decision{Status: sender.StatusDeadLettered, Health: h}
	}
	for _, code := range codes {
		w.publish(w.addressed(owner, sub))
		w.expand()
		class := sender.ClassStatus
		if code == 0 {
			class = sender.ClassDNS
		}
		w.record(answered(w.claimOne(), class, code))
		w.Advance(time.Second)
	}
}

func queryDeadLetterGroups(w *world) {
	owners := []string{w.subscriber(), w.subscriber()}
	a, b, c := w.subscribe(owners[0], "never"), w.subscribe(owners[0], "never"), w.subscribe(owners[1], "never")
	groups := func(q history.DeadLetterQuery) (all []history.DeadLetterGroup) {
		w.Helper()
		got, err := w.Store.DeadLetterGroups(w.ctx, q)
		w.noError(err, "grouping dead letters")
		w.equal(got.More, false, "there are more")
		return got.Groups
	}
	w.equal(len(groups(history.DeadLetterQuery{})), 0, "groups of none")
	start := w.now()
	w.deadLetters(owners[0], a, 500, 503, 500, 0, 500)
	w.deadLetters(owners[0], b, 500, 500)
	w.deadLetters(owners[1], c, 500)
	w.unsubscribe(c)
	type row struct {
		sub, owner string
		class      sender.Class
		code       int
		n          int64
		first      int
		last       int
	}
	all := []row{
		{a, owners[0], sender.ClassStatus, 500, 3, 0, 4}, {b, owners[0], sender.ClassStatus, 500, 2, 5, 6}, {a, owners[0], sender.ClassDNS, 0, 1, 3, 3},
		{a, owners[0], sender.ClassStatus, 503, 1, 1, 1}, {c, owners[1], sender.ClassStatus, 500, 1, 7, 7},
	}
	for _, q := range []history.DeadLetterQuery{
		{}, {Subscription: a}, {Subscriber: owners[0]}, {Subscriber: owners[1]}, {Subscription: c}, {Subscription: a, Subscriber: owners[1]},
		{Subscription: "wsub_unknown"}, {Subscriber: "sub_unknown"},
	} {
		var want []row
		for _, r := range all {
			if (q.Subscription == "" || q.Subscription == r.sub) && (q.Subscriber == "" || q.Subscriber == r.owner) {
				want = append(want, r)
			}
		}
		got := groups(q)
		w.equal(len(got), len(want), "groups that %+v selects", q)
		for i, g := range got {
			r := want[i]
			w.equal([]any{g.Subscription, g.Subscriber, g.Class, g.StatusCode, g.Count}, []any{r.sub, r.owner, r.class, r.code, r.n}, "group %d that %+v selects", i, q)
			w.sameTime(g.First, start.Add(time.Duration(r.first)*time.Second), "First of group %d", i)
			w.sameTime(g.Last, start.Add(time.Duration(r.last)*time.Second), "Last of group %d", i)
		}
	}
	w.equal(groups(history.DeadLetterQuery{Subscription: a})[0].URL, w.read(a).URL, "URL of a group")
}

func queryStatusCode(w *world) {
	owner := w.subscriber()
	sub := w.subscribe(owner, "never")
	w.deadLetters(owner, sub, 500, 503, 0, 500)
	for code, want := range map[int]int{500: 2, 503: 1, 404: 0, 0: 4} {
		all := w.list(history.DeliveryQuery{StatusCode: code})
		w.equal(len(all), want, "deliveries whose last attempt was answered with %d", code)
		for _, d := range all {
			w.check(code == 0 || d.LastStatusCode == code, "LastStatusCode is %d, want %d", d.LastStatusCode, code)
		}
	}
	w.equal(len(w.list(history.DeliveryQuery{StatusCode: 500, Class: sender.ClassDNS})), 0, "deliveries of another class")
	w.redeliver(w.list(history.DeliveryQuery{StatusCode: 503})[0].ID)
	w.record(answered(w.claimOne(), sender.ClassStatus, 410))
	w.equal(len(w.list(history.DeliveryQuery{StatusCode: 503})), 0, "deliveries by an attempt that was not the last one")
	w.equal(w.list(history.DeliveryQuery{StatusCode: 410})[0].LastStatusCode, 410, "LastStatusCode")
}

func replayGroups(w *world) {
	owners := []string{w.subscriber(), w.subscriber()}
	a, b, c := w.subscribe(owners[0], "never"), w.subscribe(owners[0], "never"), w.subscribe(owners[1], "never")
	w.deadLetters(owners[0], a, 500, 503, 500, 0)
	w.deadLetters(owners[0], b, 500, 503)
	w.deadLetters(owners[1], c, 500)
	group := func(sub string, code int) replay.Group {
		if code == 0 {
			return replay.Group{Subscription: sub, ErrorClass: sender.ClassDNS}
		}
		return replay.Group{Subscription: sub, ErrorClass: sender.ClassStatus, StatusCode: code}
	}
	dead := sender.StatusDeadLettered
	for _, x := range []struct {
		f    replay.Filter
		want int64
	}{
		{replay.Filter{StatusCode: 500}, 4}, {replay.Filter{StatusCode: 503, Subscription: a}, 1}, {replay.Filter{StatusCode: 404}, 0},
		{replay.Filter{Groups: []replay.Group{group(a, 500)}}, 2},
		{replay.Filter{Groups: []replay.Group{group(a, 0), group(b, 503), group(c, 500)}}, 3},
		{replay.Filter{Groups: []replay.Group{group(a, 0), group(b, 503)}, Subscriber: owners[0]}, 2},
		{replay.Filter{Groups: []replay.Group{group(a, 404)}}, 0},
	} {
		x.f.Status = dead
		got, err := w.Store.PreviewReplay(w.ctx, x.f, 0)
		w.noError(err, "previewing %+v", x.f)
		w.equal(got.Count, x.want, "deliveries that %+v selects", x.f)
	}
	for _, f := range []replay.Filter{
		{Groups: []replay.Group{group(a, 500), group("wsub_unknown", 500)}}, {Groups: []replay.Group{group(c, 500)}, Subscriber: owners[0]},
	} {
		f.Status = dead
		_, err := w.Store.PreviewReplay(w.ctx, f, 0)
		w.errorIs(err, sender.ErrNotFound, "previewing %+v", f)
	}
	r, err := w.Store.CreateReplay(w.ctx, replay.Replay{Filter: replay.Filter{Status: dead, Groups: []replay.Group{group(a, 500), group(b, 503)}}}, replay.Bounds{})
	w.noError(err, "creating a replay of two groups")
	w.equal(r.Matched, int64(3), "Matched")
	_, err = w.Store.StepReplays(w.ctx, plenty, nil)
	w.noError(err, "stepping")
	sent := map[string]int{}
	for _, x := range w.claim(plenty) {
		sent[x.Target.Subscription]++
	}
	w.equal([]int{sent[a], sent[b], sent[c]}, []int{2, 1, 0}, "deliveries that are sent again")
	got, err := w.Store.Replay(w.ctx, r.ID)
	w.noError(err, "reading the replay")
	w.equal(got.Filter.Groups, r.Filter.Groups, "Groups as they are kept")
}

func queryFailing(w *world) {
	owners := []string{w.subscriber(), w.subscriber()}
	var subs []string
	for i := range 6 {
		subs = append(subs, w.subscribe(owners[i%2], "a.b"))
	}
	w.equal(w.listSubscriptions(sender.SubscriptionQuery{Failing: true}), []string{}, "failing subscriptions of none")
	since := w.now()
	// Two of them fail since times that differ by less than a cursor has.
	failing := map[string]time.Duration{subs[0]: 3 * time.Minute, subs[2]: time.Minute + 500, subs[3]: 2 * time.Minute, subs[4]: time.Minute, subs[5]: 0}
	w.publish(w.draft("a.b"))
	w.expand()
	claimed := w.claim(plenty)
	for _, c := range claimed {
		at, fails := failing[c.Target.Subscription]
		w.decide = func(_ dispatch.Live, h sender.Health, _ dispatch.Result, _ time.Time) dispatch.Decision {
			if fails {
				h.FailingSince = since.Add(at)
			}
			return dispatch.Decision{Status: sender.StatusDeadLettered, Health: h}
		}
		w.record(result(c, sender.ClassTimeout))
	}
	w.pause(subs[5])
	for _, x := range []struct {
		q    sender.SubscriptionQuery
		want []string
	}{
		{sender.SubscriptionQuery{Failing: true}, []string{subs[2], subs[4], subs[3], subs[0]}},
		{sender.SubscriptionQuery{Failing: true, Subscriber: owners[1]}, []string{subs[3]}},
		{sender.SubscriptionQuery{ID: subs[3]}, []string{subs[3]}},
		{sender.SubscriptionQuery{ID: subs[3], Subscriber: owners[0]}, []string{}},
		{sender.SubscriptionQuery{ID: "wsub_unknown"}, []string{}},
		{sender.SubscriptionQuery{URL: "no such text"}, []string{}},
	} {
		for _, limit := range []int{0, 1, 3} {
			x.q.Limit = limit
			w.equal(w.listSubscriptions(x.q), x.want, "subscriptions that %+v selects", x.q)
		}
	}
	moved := w.read(subs[1])
	moved.URL = "https://api.ACME.example/webhooks/v2"
	w.update(moved)
	for _, part := range []string{"acme", "WEBHOOKS/v2"} {
		w.equal(w.listSubscriptions(sender.SubscriptionQuery{URL: part}), []string{subs[1]}, "subscriptions with %q in their URLs", part)
	}
}

func noticeGroups(w *world) {
	owner := w.subscriber()
	note := func(kind sender.NoticeKind, subscriber, subscription string) sender.Notice {
		return sender.Notice{Kind: kind, Subscriber: subscriber, Subscription: subscription, Detail: string(kind)}
	}
	store := func(ns ...sender.Notice) {
		w.Helper()
		_, _, err := w.Store.Step(w.ctx, dispatch.ExpandParams{}, dispatch.Batch{Notices: ns})
		w.noError(err, "storing notices")
	}
	groups := func(subscriber string) (rows [][]any) {
		w.Helper()
		got, err := w.Store.NoticeGroups(w.ctx, subscriber)
		w.noError(err, "grouping notices")
		for _, g := range got.Groups {
			rows = append(rows, []any{g.Kind, g.Subscriber, g.Subscription, g.Count, g.Detail})
		}
		return rows
	}
	start := w.now()
	store(note(sender.NoticeDeadLettered, owner, "wsub_1"), note(sender.NoticeDeadLettered, owner, "wsub_2"), note(sender.NoticeDisabled, owner, "wsub_1"))
	w.Advance(time.Minute)
	store(note(sender.NoticeDeadLettered, owner, "wsub_1"), note(sender.NoticeDeadLettered, sender.Operator, "wsub_1"))
	operators := []any{sender.NoticeDeadLettered, sender.Operator, "wsub_1", int64(1), string(sender.NoticeDeadLettered)}
	first := []any{sender.NoticeDeadLettered, owner, "wsub_1", int64(2), string(sender.NoticeDeadLettered)}
	disabled := []any{sender.NoticeDisabled, owner, "wsub_1", int64(1), string(sender.NoticeDisabled)}
	second := []any{sender.NoticeDeadLettered, owner, "wsub_2", int64(1), string(sender.NoticeDeadLettered)}
	w.equal(groups(""), [][]any{operators, first, disabled, second}, "groups of all")
	w.equal(groups(owner), [][]any{first, disabled, second}, "groups of an owner")
	w.equal(len(groups("sub_unknown")), 0, "groups of nobody")
	got, err := w.Store.NoticeGroups(w.ctx, owner)
	w.noError(err, "grouping notices")
	g := got.Groups[0]
	w.sameTime(g.First, start, "First")
	w.sameTime(g.Last, start.Add(time.Minute), "Last")
	w.Advance(time.Minute)
	store(note(sender.NoticeDeadLettered, owner, "wsub_1"))
	for _, want := range []int{1, 1, 0} {
		n, err := w.Store.AcknowledgeNotices(w.ctx, g, 1)
		w.noError(err, "acknowledging a group")
		w.equal(n, want, "acknowledged: what was made after the group was read stays")
	}
	first[3] = int64(1)
	w.equal(groups(owner), [][]any{first, disabled, second}, "groups that are left")
	c, err := w.Store.Counts(w.ctx)
	w.noError(err, "counting")
	w.equal(c.Notices, int64(4), "notices that nobody has acknowledged")
}

func queryKinds(w *world) {
	owner := w.subscriber()
	sub := w.subscribe(owner, "*")
	d := w.draft("a.b")
	w.publish(d)
	w.expand()
	r, err := w.Store.CreateReplay(w.ctx, replay.Replay{Filter: replay.Filter{Status: sender.StatusDeadLettered}}, replay.Bounds{})
	w.noError(err, "creating a replay")
	for _, x := range []struct {
		id     string
		object sender.Object
		want   []history.FoundKind
	}{
		{d.ID, sender.Object{}, []history.FoundKind{history.FoundEvent}},
		{w.list(history.DeliveryQuery{})[0].ID, sender.Object{}, []history.FoundKind{history.FoundDelivery}},
		{sub, sender.Object{}, []history.FoundKind{history.FoundSubscription}},
		{owner, sender.Object{}, []history.FoundKind{history.FoundSubscriber}},
		{r.ID, sender.Object{}, []history.FoundKind{history.FoundReplay}},
		{"x", d.Object, []history.FoundKind{history.FoundObject}},
		{"x", sender.Object{Type: d.Object.Type, ID: "unknown"}, nil},
		{"", sender.Object{}, nil}, {"dlv_", sender.Object{}, nil}, {"evt_\x00", sender.Object{Type: "\x00"}, nil},
	} {
		got, err := w.Store.Kinds(w.ctx, x.id, x.object)
		w.noError(err, "looking up %q", x.id)
		w.equal(got, x.want, "what %q and %v are", x.id, x.object)
	}
}
