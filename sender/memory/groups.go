package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
)

// DeadLetterGroups implements history.Store. It looks at every delivery.
func (s *Store) DeadLetterGroups(ctx context.Context, q history.DeadLetterQuery) (out history.DeadLetterGroups, err error) {
	err = s.inTx(ctx, func(*Tx) error {
		var dead []*delivery
		for _, sub := range s.subscriptions {
			if q.Subscription != "" && sub.ID != q.Subscription || q.Subscriber != "" && sub.owner.ID != q.Subscriber {
				continue
			}
			for _, d := range sub.deliveries {
				if d.live == nil && d.ended == sender.StatusDeadLettered {
					dead = append(dead, d)
				}
			}
		}
		slices.SortFunc(dead, func(a, b *delivery) int { return cmp.Compare(b.endedAs, a.endedAs) })
		out.More = len(dead) > history.MaxExamined
		out.Groups = grouped(dead[:min(len(dead), history.MaxExamined)])
		return nil
	})
	return out, err
}

// grouped groups dead letters.
func grouped(dead []*delivery) (groups []history.DeadLetterGroup) {
	type key struct {
		sub   *subscription
		class sender.Class
		code  int
	}
	by := map[key]*history.DeadLetterGroup{}
	for _, d := range dead {
		c := d.candidate()
		k := key{d.sub, c.ErrorClass, c.StatusCode}
		g := by[k]
		if g == nil {
			g = &history.DeadLetterGroup{Subscription: d.sub.ID, Subscriber: d.sub.owner.ID, URL: d.sub.URL, Class: k.class, StatusCode: k.code, First: d.endedAt}
			by[k] = g
		}
		g.Count++
		g.First, g.Last = sooner(g.First, d.endedAt), later(g.Last, d.endedAt)
	}
	keys := slices.SortedFunc(maps.Keys(by), func(a, b key) int {
		return cmp.Or(cmp.Compare(by[b].Count, by[a].Count), cmp.Compare(a.sub.no, b.sub.no), cmp.Compare(a.class, b.class), cmp.Compare(a.code, b.code))
	})
	for _, k := range keys {
		groups = append(groups, *by[k])
	}
	return groups
}

// sooner returns the earlier one of two times.
func sooner(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// NoticeGroups implements history.Store. It looks at every notice.
func (s *Store) NoticeGroups(ctx context.Context, subscriber string) (out history.NoticeGroups, err error) {
	type key struct {
		kind                     sender.NoticeKind
		subscriber, subscription string
	}
	err = s.inTx(ctx, func(*Tx) error {
		at := map[key]int{}
		looked := 0
		for _, n := range slices.Backward(s.notices) {
			if !n.AcknowledgedAt.IsZero() || subscriber != "" && n.Subscriber != subscriber {
				continue
			}
			if looked++; looked > history.MaxExamined {
				out.More = true
				break
			}
			k := key{n.Kind, n.Subscriber, n.Subscription}
			i, known := at[k]
			if !known {
				i = len(out.Groups)
				at[k] = i
				out.Groups = append(out.Groups, history.NoticeGroup{
					Kind: n.Kind, Subscriber: n.Subscriber, Subscription: n.Subscription, Newest: n.ID, Detail: n.Detail, First: n.CreatedAt,
				})
			}
			g := &out.Groups[i]
			g.Count++
			g.First, g.Last = sooner(g.First, n.CreatedAt), later(g.Last, n.CreatedAt)
		}
		return nil
	})
	return out, err
}

// AcknowledgeNotices implements history.Store.
func (s *Store) AcknowledgeNotices(ctx context.Context, g history.NoticeGroup, limit int) (done int, err error) {
	err = s.inTx(ctx, func(tx *Tx) error {
		for _, n := range s.notices {
			if done == limit {
				break
			}
			if !n.AcknowledgedAt.IsZero() || n.Kind != g.Kind || n.Subscriber != g.Subscriber || n.Subscription != g.Subscription || n.CreatedAt.After(g.Last) {
				continue
			}
			set(tx, &n.AcknowledgedAt, s.now())
			done++
		}
		return nil
	})
	return done, err
}

// Kinds implements history.Store.
func (s *Store) Kinds(ctx context.Context, id string, object sender.Object) (kinds []history.FoundKind, err error) {
	err = s.inTx(ctx, func(*Tx) error {
		_, noReplay := s.replay(id)
		_, known := s.versions[object]
		for _, k := range []struct {
			kind  history.FoundKind
			there bool
		}{
			{history.FoundEvent, s.eventByID[id] != nil},
			{history.FoundDelivery, s.deliveryByID(id) != nil},
			{history.FoundSubscription, s.subscription[id] != nil},
			{history.FoundSubscriber, s.subscriber[id] != nil},
			{history.FoundNotice, s.notice(id) != nil},
			{history.FoundReplay, noReplay == nil},
			{history.FoundObject, object.Type != "" && known},
		} {
			if k.there {
				kinds = append(kinds, k.kind)
			}
		}
		return nil
	})
	return kinds, err
}
