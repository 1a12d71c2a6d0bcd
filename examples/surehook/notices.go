package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/surehook/surehook/sender"
)

// notice has the members of the reference server's JSON that are printed.
type notice struct {
	ID             string     `json:"id"`
	Kind           string     `json:"kind"`
	SubscriberID   string     `json:"subscriber_id"`
	SubscriptionID *string    `json:"subscription_id"`
	DeliveryID     *string    `json:"delivery_id"`
	Detail         string     `json:"detail"`
	CreatedAt      time.Time  `json:"created_at"`
	AcknowledgedAt *time.Time `json:"acknowledged_at"`
}

type noticePage struct {
	Data       []notice `json:"data"`
	NextCursor *string  `json:"next_cursor"`
}

// notices selects notices.
type notices struct {
	kind         string
	acknowledged bool // those, too
}

var noticeKinds = []string{
	string(sender.NoticeDeadLettered), string(sender.NoticeFailing), string(sender.NoticeDisabled),
	string(sender.NoticeNetwork), string(sender.NoticeProxy), string(sender.NoticeReplayFinished),
}

func (n *notices) flags(set *flag.FlagSet) {
	set.Func("kind", "a `kind`: "+strings.Join(noticeKinds, ", "), func(kind string) error {
		if n.kind = kind; !slices.Contains(noticeKinds, kind) {
			return errors.New("it must be one of " + strings.Join(noticeKinds, ", "))
		}
		return nil
	})
}

func noticesCommand() command {
	return command{
		name: "notices", summary: "list what somebody must learn, until it is acknowledged",
		about: `Lists the notices that nobody has acknowledged, the newest first: dead letters,
subscriptions that are failing or were disabled, a network or a proxy that is away.`,
		example: "surehook notices -kind subscription.disabled",
		flags: func(f *flag.FlagSet) func(context.Context, *terminal, []string) error {
			var o target
			var which notices
			var limit int
			o.flags(f)
			which.flags(f)
			f.BoolVar(&which.acknowledged, "acknowledged", false, "also those that were acknowledged and are kept still")
			f.IntVar(&limit, "limit", 50, "how many are listed at most")
			return func(ctx context.Context, t *terminal, _ []string) error {
				if limit < 1 {
					return fmt.Errorf("-limit is %d: it must be 1 or more", limit)
				}
				b, err := o.open(ctx, t)
				if err != nil {
					return err
				}
				defer b.close()
				p := noticePage{Data: []notice{}}
				err = eachNotices(ctx, t, b, which, func(some noticePage) (bool, error) {
					p.Data, p.NextCursor = append(p.Data, some.Data...), some.NextCursor
					return len(p.Data) < limit, nil
				})
				if err != nil {
					return err
				}
				more := p.NextCursor != nil || len(p.Data) > limit
				p.Data = p.Data[:min(limit, len(p.Data))]
				if t.json {
					return t.encode(map[string]any{"data": p.Data, "more": more})
				}
				printNotices(t, p.Data)
				if more {
					t.say("there are more: -limit lists them")
				}
				return nil
			}
		},
	}
}

// eachNotices calls fn with page after page until it returns false.
func eachNotices(ctx context.Context, t *terminal, b backend, which notices, fn func(noticePage) (bool, error)) error {
	for cursor, found := "", 0; ; {
		p, err := b.notices(ctx, which, cursor)
		if err != nil {
			return err
		}
		more, err := fn(p)
		if found += len(p.Data); err != nil || !more || p.NextCursor == nil {
			t.unfinished()
			return err
		}
		t.progress("looking: %d found", found)
		cursor = *p.NextCursor
	}
}

func printNotices(t *terminal, list []notice) {
	if len(list) == 0 {
		t.say("there are none")
		return
	}
	rows := [][]string{{"SINCE (UTC)", "KIND", "OF", "ABOUT", "DETAIL", "ID"}}
	for _, n := range list {
		about := "-"
		if id := cmp.Or(n.DeliveryID, n.SubscriptionID); id != nil {
			about = *id
		}
		rows = append(rows, []string{clock(n.CreatedAt), n.Kind, n.SubscriberID, about, n.Detail, n.ID})
	}
	t.table(rows)
}

func acknowledgeCommand() command {
	return command{
		name: "acknowledge", summary: "take notices off the list",
		args: "[ID…]", arguments: [2]int{0, -1},
		about: `Marks notices as read: those that are named, or with -all those that surehook notices
would list. A Notifier that has not taken one yet is told of it no more. They are removed
with the retention.`,
		example: "surehook acknowledge -all -kind replay.finished",
		flags: func(f *flag.FlagSet) func(context.Context, *terminal, []string) error {
			var o target
			var which notices
			var all bool
			o.flags(f)
			which.flags(f)
			f.BoolVar(&all, "all", false, "all that nobody has acknowledged, or all of a -kind")
			return func(ctx context.Context, t *terminal, ids []string) error {
				switch {
				case all == (len(ids) > 0):
					return errors.New("give the ids of notices, or -all")
				case which.kind != "" && !all:
					return errors.New("-kind is for -all")
				}
				b, err := o.open(ctx, t)
				if err != nil {
					return err
				}
				defer b.close()
				if all {
					err = eachNotices(ctx, t, b, which, func(some noticePage) (bool, error) {
						for _, n := range some.Data {
							ids = append(ids, n.ID)
						}
						return true, nil
					})
					if err != nil {
						return err
					}
				}
				for i, id := range ids {
					if err := b.acknowledge(ctx, id); err != nil {
						t.unfinished()
						return fmt.Errorf("%w: %d of %d were acknowledged before", err, i, len(ids))
					}
					t.progress("acknowledged %d of %d", i+1, len(ids))
				}
				t.unfinished()
				if t.json {
					return t.encode(map[string]int{"acknowledged": len(ids)})
				}
				t.say("acknowledged: %d", len(ids))
				return nil
			}
		},
	}
}
