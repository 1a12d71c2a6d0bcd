package storetest

import (
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

func notifyingRules() []rule {
	return []rule{
		{"listed newest first", "Notices are listed newest first, by whom they are for, by subscription, by kind, and only unread ones if asked; the cursor leads through all of them once.", noticesListed},
		{"a cursor that is none", "A cursor that no page came with is refused.", noticesBadCursor},
		{"acknowledged once", "Acknowledging a notice keeps the time of the first acknowledgement, and another subscriber's notice is not found.", noticesAcknowledged},
		{"claimed under a lease", "A notice that was claimed is claimed again only when its lease ends, or when it was put off and that time is over; the tries count up.", noticesClaimed},
		{"accepted or acknowledged", "A notice that a notifier has accepted, or somebody has acknowledged, is not claimed any more.", noticesDone},
		{"in their order", "Notices are claimed in the order in which they have become due, up to the limit.", noticesInOrder},
	}
}

// note stores notices that concern no subscription.
func (w *world) note(notices ...sender.Notice) []sender.Notice {
	w.Helper()
	_, c, err := w.Store.Step(w.ctx, dispatch.ExpandParams{}, dispatch.Batch{Decide: w.decide, Notices: notices})
	w.noError(err, "storing notices")
	w.equal(len(c.Notices), len(notices), "number of Claims.Notices")
	return c.Notices
}

func (w *world) listNotices(q history.NoticeQuery) (ids []string) {
	w.Helper()
	for range plenty {
		page, next, err := w.Store.Notices(w.ctx, q)
		w.noError(err, "listing notices")
		for _, n := range page {
			ids = append(ids, n.ID)
		}
		if next == "" {
			return ids
		}
		q.Cursor = next
	}
	w.Fatal("listing notices does not come to an end")
	return nil
}

func (w *world) claimNotices(limit int) (ids []string) {
	w.Helper()
	claimed, err := w.Store.ClaimNotices(w.ctx, lease, limit)
	w.noError(err, "claiming notices")
	for _, n := range claimed {
		ids = append(ids, n.ID)
	}
	return ids
}

func noticesListed(w *world) {
	all := w.note(
		sender.Notice{Kind: sender.NoticeFailing, Subscriber: "sub_a", Subscription: "wsub_1", Detail: "half", Percent: 50},
		sender.Notice{Kind: sender.NoticeNetwork, Subscriber: sender.Operator, Detail: "down"},
		sender.Notice{Kind: sender.NoticeDeadLettered, Subscriber: "sub_a", Subscription: "wsub_2", Delivery: "dlv_1", Detail: "dead"},
		sender.Notice{Kind: sender.NoticeReplayFinished, Subscriber: "sub_b", Replay: "rpl_1", Detail: "done"},
	)
	for i, n := range all {
		w.check(n.ID != "", "notice %d has no id", i)
		w.sameTime(n.CreatedAt, w.now(), "CreatedAt of notice %d", i)
	}
	_, err := w.Store.AcknowledgeNotice(w.ctx, all[0].ID, "")
	w.noError(err, "acknowledging")
	ids := func(of ...int) (ids []string) {
		for _, i := range of {
			ids = append(ids, all[i].ID)
		}
		return ids
	}
	for _, c := range []struct {
		q    history.NoticeQuery
		want []string
	}{
		{history.NoticeQuery{}, ids(3, 2, 1, 0)},
		{history.NoticeQuery{Limit: 1}, ids(3, 2, 1, 0)},
		{history.NoticeQuery{Limit: 2}, ids(3, 2, 1, 0)},
		{history.NoticeQuery{Subscriber: "sub_a"}, ids(2, 0)},
		{history.NoticeQuery{Subscriber: sender.Operator}, ids(1)},
		{history.NoticeQuery{Subscription: "wsub_1"}, ids(0)},
		{history.NoticeQuery{Kind: sender.NoticeNetwork}, ids(1)},
		{history.NoticeQuery{Subscriber: "sub_a", Unread: true}, ids(2)},
		{history.NoticeQuery{Subscriber: "sub_a", Kind: sender.NoticeNetwork}, nil},
	} {
		w.equal(w.listNotices(c.q), c.want, "notices of %+v", c.q)
	}
	page, _, err := w.Store.Notices(w.ctx, history.NoticeQuery{Subscription: "wsub_2"})
	w.noError(err, "listing")
	w.sameTime(page[0].CreatedAt, all[2].CreatedAt, "CreatedAt as listed")
	page[0].CreatedAt = all[2].CreatedAt
	w.equal(page[0], all[2], "notice as listed")
}

func noticesBadCursor(w *world) {
	w.note(sender.Notice{Kind: sender.NoticeNetwork, Subscriber: sender.Operator})
	for _, cursor := range []string{"?", "0", "-1", "01"} {
		_, _, err := w.Store.Notices(w.ctx, history.NoticeQuery{Cursor: cursor})
		w.errorIs(err, sender.ErrInvalid, "listing with the cursor %q", cursor)
	}
}

func noticesAcknowledged(w *world) {
	id := w.note(sender.Notice{Kind: sender.NoticeFailing, Subscriber: "sub_a"})[0].ID
	_, err := w.Store.AcknowledgeNotice(w.ctx, id, "sub_b")
	w.errorIs(err, sender.ErrNotFound, "acknowledging another's notice")
	_, err = w.Store.AcknowledgeNotice(w.ctx, "ntc_none", "")
	w.errorIs(err, sender.ErrNotFound, "acknowledging a notice that there is not")
	w.equal(w.listNotices(history.NoticeQuery{Unread: true}), []string{id}, "unread notices")

	first, err := w.Store.AcknowledgeNotice(w.ctx, id, "sub_a")
	w.noError(err, "acknowledging")
	w.sameTime(first.AcknowledgedAt, w.now(), "AcknowledgedAt")
	w.Advance(time.Hour)
	again, err := w.Store.AcknowledgeNotice(w.ctx, id, "")
	w.noError(err, "acknowledging again")
	w.sameTime(again.AcknowledgedAt, first.AcknowledgedAt, "AcknowledgedAt, acknowledged again")
	w.equal(len(w.listNotices(history.NoticeQuery{Unread: true})), 0, "number of unread notices")
}

func noticesClaimed(w *world) {
	id := w.note(sender.Notice{Kind: sender.NoticeFailing, Subscriber: "sub_a", Detail: "d"})[0].ID
	claimed, err := w.Store.ClaimNotices(w.ctx, lease, 10)
	w.noError(err, "claiming notices")
	w.equal(len(claimed), 1, "number of notices claimed")
	w.equal([]any{claimed[0].ID, claimed[0].Detail, claimed[0].Tries}, []any{id, "d", 1}, "what was claimed")

	w.equal(len(w.claimNotices(10)), 0, "notices claimed under another lease")
	w.Advance(lease)
	claimed, err = w.Store.ClaimNotices(w.ctx, lease, 10)
	w.noError(err, "claiming notices")
	w.equal(len(claimed), 1, "number of notices claimed once the lease has ended")
	w.equal(claimed[0].Tries, 2, "tries")

	w.noError(w.Store.SettleNotice(w.ctx, id, 10*lease), "putting a notice off")
	w.Advance(10*lease - time.Second)
	w.equal(len(w.claimNotices(10)), 0, "notices claimed before the time that they are put off to")
	w.Advance(time.Second)
	w.equal(w.claimNotices(10), []string{id}, "notices claimed then")
}

func noticesDone(w *world) {
	all := w.note(sender.Notice{Kind: sender.NoticeFailing, Subscriber: "sub_a"}, sender.Notice{Kind: sender.NoticeFailing, Subscriber: "sub_a"})
	w.equal(len(w.claimNotices(10)), 2, "number of notices claimed")
	at := w.now()
	w.noError(w.Store.SettleNotice(w.ctx, all[0].ID, 0), "accepting")
	_, err := w.Store.AcknowledgeNotice(w.ctx, all[1].ID, "")
	w.noError(err, "acknowledging")
	w.noError(w.Store.SettleNotice(w.ctx, all[0].ID, time.Second), "putting off what was accepted")
	w.Advance(24 * time.Hour)
	w.equal(len(w.claimNotices(10)), 0, "notices claimed that are done with")
	page, _, err := w.Store.Notices(w.ctx, history.NoticeQuery{})
	w.noError(err, "listing")
	w.sameTime(page[1].NotifiedAt, at, "NotifiedAt of the accepted one")
	w.check(page[0].NotifiedAt.IsZero(), "NotifiedAt of the other one is %v", page[0].NotifiedAt)
}

func noticesInOrder(w *world) {
	made := func() string {
		defer w.Advance(time.Second)
		return w.note(sender.Notice{Kind: sender.NoticeFailing, Subscriber: "sub_a"})[0].ID
	}
	first, second, third := made(), made(), made()
	w.equal(w.claimNotices(2), []string{first, second}, "the first notices claimed")
	w.equal(w.claimNotices(2), []string{third}, "the rest")

	w.noError(w.Store.SettleNotice(w.ctx, first, 3*time.Second), "putting a notice off")
	fourth := made()
	w.noError(w.Store.SettleNotice(w.ctx, third, time.Second), "putting a notice off")
	w.Advance(lease)
	w.equal(w.claimNotices(3), []string{fourth, third, first}, "notices claimed once all are due, some of which were put off")
	w.equal(w.claimNotices(3), []string{second}, "the one whose lease has ended last")
}
