package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/sender"
)

// NoticeGroup are the notices of one kind that nobody has acknowledged, about one
// subscription and for one addressee.
type NoticeGroup struct {
	Kind         sender.NoticeKind
	Subscriber   string // the id of the addressee
	Subscription string // the id of the subscription; "": they are about none

	Count       int64
	First, Last time.Time // when they were made
	Newest      string    // the id of the newest
	Detail      string    // of the newest
}

// NoticeGroups are the groups, and whether they are complete.
type NoticeGroups struct {
	Groups []NoticeGroup // those with the newest notice first
	// More tells that not all notices were looked at: there may be others.
	More bool
}

// Add counts a notice that nobody has acknowledged, after those that are newer. Stores call
// it.
func (g *NoticeGroups) Add(n *sender.Notice) {
	at := slices.IndexFunc(g.Groups, func(o NoticeGroup) bool {
		return o.Kind == n.Kind && o.Subscriber == n.Subscriber && o.Subscription == n.Subscription
	})
	if at < 0 {
		at = len(g.Groups)
		g.Groups = append(g.Groups, NoticeGroup{
			Kind: n.Kind, Subscriber: n.Subscriber, Subscription: n.Subscription, Newest: n.ID, Detail: n.Detail, First: n.CreatedAt,
		})
	}
	o := &g.Groups[at]
	o.Count++
	o.First, o.Last = earlier(o.First, n.CreatedAt), later(o.Last, n.CreatedAt)
}

// NoticeGroups groups the newest notices that nobody has acknowledged, by kind, addressee
// and subscription. It looks at up to MaxExamined of them. If subscriber is not empty, it
// takes those of the addressee's newest MaxExamined notices that nobody has acknowledged.
func (h *History) NoticeGroups(ctx context.Context, subscriber string) (NoticeGroups, error) {
	if err := errors.Join(ident.AllStorable(sender.ErrInvalid, ident.Text{Name: "subscriber", Text: subscriber})...); err != nil {
		return NoticeGroups{}, err
	}
	return h.store.NoticeGroups(ctx, subscriber)
}

// acknowledgedAtOnce is how many notices a transaction acknowledges.
const acknowledgedAtOnce = 500

// AcknowledgeGroup acknowledges the notices of a group, of those that were made up to
// g.Last, and returns how many it has acknowledged. So a notice that was made since the
// group was read stays. It works in short transactions; if it fails, some are
// acknowledged, and it can be called again. ErrInvalid: the group has no Kind, no
// Subscriber or no Last.
func (h *History) AcknowledgeGroup(ctx context.Context, g NoticeGroup) (n int, err error) {
	errs := ident.AllStorable(sender.ErrInvalid, ident.Text{Name: "kind", Text: string(g.Kind)}, ident.Text{Name: "subscriber", Text: g.Subscriber}, ident.Text{Name: "subscription", Text: g.Subscription})
	if g.Kind == "" || g.Subscriber == "" || g.Last.IsZero() {
		errs = append(errs, fmt.Errorf("%w group of notices: give the kind, the subscriber and the time of the last one, as NoticeGroups tells them", sender.ErrInvalid))
	}
	if err := errors.Join(errs...); err != nil {
		return 0, err
	}
	for {
		done, err := h.store.AcknowledgeNotices(ctx, g, acknowledgedAtOnce)
		n += done
		if err != nil || done < acknowledgedAtOnce {
			return n, err
		}
	}
}
