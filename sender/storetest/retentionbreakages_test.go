package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
)

func onPrune(change func(*sender.PruneParams)) func(*broken, *harness) {
	return func(b *broken, _ *harness) {
		b.prune = func(ctx context.Context, p sender.PruneParams) (sender.Pruned, error) {
			change(&p)
			return b.Store.Prune(ctx, p)
		}
	}
}

// retentionBreakages break pruning and redaction.
var retentionBreakages = map[string]breakage{
	"pruned too early": {[]string{"retention/delivered", "retention/cancelled"}, onPrune(func(p *sender.PruneParams) {
		p.Delivered = p.Delivered.Add(2 * time.Hour)
	})},
	"events pruned too early":  {[]string{"retention/events"}, onPrune(func(p *sender.PruneParams) { p.Events = p.Events.Add(2 * time.Hour) })},
	"notices pruned too early": {[]string{"retention/notices"}, onPrune(func(p *sender.PruneParams) { p.Notices = p.Notices.Add(2 * time.Hour) })},
	"dead letters are not set apart": {[]string{"retention/dead letters", "retention/times apart", "retention/random, seed 1"}, onPrune(func(p *sender.PruneParams) {
		p.DeadLetters = p.Delivered
	})},
	"dead letters for ever": {[]string{"retention/dead letters", "retention/random, seed 1"}, onPrune(func(p *sender.PruneParams) { p.DeadLetters = time.Time{} })},
	"events for ever":       {[]string{"retention/events", "retention/held backlogs"}, onPrune(func(p *sender.PruneParams) { p.Events = time.Time{} })},
	"limit of pruning ignored": {[]string{"retention/bounded", "retention/held backlogs"}, onPrune(func(p *sender.PruneParams) {
		if p.Limit > 0 {
			p.Limit = 1 << 20
		}
	})},
	"a pass ends with its first batch": {[]string{"retention/bounded"}, func(b *broken, _ *harness) {
		b.prune = func(ctx context.Context, p sender.PruneParams) (sender.Pruned, error) {
			got, err := b.Store.Prune(ctx, p)
			got.Cursor = ""
			return got, err
		}
	}},
	"malformed cursor of a pass taken for none": {[]string{"retention/malformed"}, func(b *broken, _ *harness) {
		b.prune = func(ctx context.Context, p sender.PruneParams) (sender.Pruned, error) {
			got, err := b.Store.Prune(ctx, p)
			if errors.Is(err, sender.ErrInvalid) && p.Limit > 0 {
				p.Cursor = ""
				return b.Store.Prune(ctx, p)
			}
			return got, err
		}
	}},
	"unread notices pruned": {[]string{"retention/notices"}, func(b *broken, _ *harness) {
		b.prune = func(ctx context.Context, p sender.PruneParams) (sender.Pruned, error) {
			all, _, err := b.Notices(ctx, sender.NoticeQuery{})
			for _, n := range all {
				if n.CreatedAt.Before(p.Notices) {
					_, failed := b.AcknowledgeNotice(ctx, n.ID, "")
					err = errors.Join(err, failed)
					p.Notices = p.Notices.Add(1000 * time.Hour)
				}
			}
			got, failed := b.Store.Prune(ctx, p)
			return got, errors.Join(err, failed)
		}
	}},
	"records counted from the publishing": {[]string{"retention/delivered", "retention/sent again"}, func(b *broken, _ *harness) {
		var before time.Time
		b.prune = func(ctx context.Context, p sender.PruneParams) (sender.Pruned, error) {
			before = p.Delivered
			return b.Store.Prune(ctx, p)
		}
		b.delivery = func(ctx context.Context, id string) (sender.Delivery, error) {
			d, err := b.Store.Delivery(ctx, id)
			if err == nil && d.Status == sender.StatusDelivered && d.CreatedAt.Before(before) {
				return sender.Delivery{}, sender.ErrNotFound
			}
			return d, err
		}
	}},
	"held ones pruned": {[]string{"retention/held backlogs", "retention/random, seed 1"}, func(b *broken, _ *harness) {
		var before time.Time
		b.prune = func(ctx context.Context, p sender.PruneParams) (sender.Pruned, error) {
			before = p.Delivered
			return b.Store.Prune(ctx, p)
		}
		onPage(func(_ sender.DeliveryQuery, page []sender.Delivery) []sender.Delivery {
			return slices.DeleteFunc(page, func(d sender.Delivery) bool {
				return d.Status == sender.StatusHeld && d.CreatedAt.Before(before)
			})
		})(b, nil)
	}},
	"keys outlive their events": {[]string{"retention/events"}, func(b *broken, _ *harness) {
		hashes := map[string][32]byte{}
		b.publishTx = func(ctx context.Context, tx tx, drafts []sender.Draft) ([]sender.Ref, error) {
			for _, d := range drafts {
				if hash, known := hashes[d.Key]; known && hash != d.KeyHash {
					return nil, sender.ErrIdempotencyKey
				}
				if d.Key != "" {
					hashes[d.Key] = d.KeyHash
				}
			}
			return b.Store.PublishTx(ctx, tx, drafts)
		}
	}},
	"versions pruned": {[]string{"retention/events"}, func(b *broken, _ *harness) {
		first := map[sender.Object]int64{} // the first version after a pass
		forget := false
		b.prune = func(ctx context.Context, p sender.PruneParams) (sender.Pruned, error) {
			got, err := b.Store.Prune(ctx, p)
			forget = forget || got.Events > 0
			return got, err
		}
		b.publishTx = func(ctx context.Context, tx tx, drafts []sender.Draft) ([]sender.Ref, error) {
			refs, err := b.Store.PublishTx(ctx, tx, drafts)
			for i := range refs {
				if obj := drafts[i].Object; forget {
					first[obj] = min(refs[i].Version, max(first[obj], 1<<40))
					refs[i].Version -= first[obj] - 1
				}
			}
			return refs, err
		}
	}},

	"objects forgotten too early": {[]string{"retention/objects"}, onPrune(func(p *sender.PruneParams) {
		if !p.Objects.IsZero() {
			p.Objects = p.Objects.Add(2 * time.Hour)
		}
	})},
	"objects for ever": {[]string{"retention/objects"}, onPrune(func(p *sender.PruneParams) { p.Objects = time.Time{} })},
	"objects always forgotten": {[]string{"retention/objects for ever"}, onPrune(func(p *sender.PruneParams) {
		if p.Objects.IsZero() {
			p.Objects = p.Events
		}
	})},
	"an object that was forgotten begins anew": {[]string{"retention/objects"}, func(b *broken, _ *harness) {
		forgotten := false
		b.prune = func(ctx context.Context, p sender.PruneParams) (sender.Pruned, error) {
			got, err := b.Store.Prune(ctx, p)
			forgotten = forgotten || got.Objects > 0
			return got, err
		}
		b.publishTx = func(ctx context.Context, tx tx, drafts []sender.Draft) ([]sender.Ref, error) {
			refs, err := b.Store.PublishTx(ctx, tx, drafts)
			for i := range refs {
				if forgotten && drafts[i].Object.ID == "old" {
					refs[i].Version = 1
				}
			}
			return refs, err
		}
	}},

	"deleted subscriptions for ever": {[]string{"retention/subscriptions"}, func(b *broken, _ *harness) {
		b.prune = func(ctx context.Context, p sender.PruneParams) (sender.Pruned, error) {
			got, err := b.Store.Prune(ctx, p)
			got.Subscriptions = 0
			return got, err
		}
	}},

	"bodies kept": {[]string{"redaction/of an object", "redaction/of a subscriber"}, onDelivery(func(d *sender.Delivery) {
		if d.Redacted {
			d.Body = []byte("body")
		}
	})},
	"snippets kept": {[]string{"redaction/of an object", "redaction/in flight"}, onDelivery(func(d *sender.Delivery) {
		for i := range d.Attempts {
			if d.Redacted && d.Attempts[i].Class != sender.ClassNone {
				d.Attempts[i].Snippet = []byte("no")
			}
		}
	})},
	"redaction not said": {[]string{"redaction/of an object", "redaction/live ones are cancelled"}, func(b *broken, h *harness) {
		onDelivery(func(d *sender.Delivery) { d.Redacted = false })(b, h)
	}},
	"redaction not said in lists": {[]string{"redaction/of an object"}, onPage(func(_ sender.DeliveryQuery, page []sender.Delivery) []sender.Delivery {
		for i := range page {
			page[i].Redacted = false
		}
		return page
	})},
	"redacted is redelivered": {[]string{"redaction/redeliver"}, func(b *broken, _ *harness) {
		b.redeliver = func(ctx context.Context, id string, notBefore time.Time) error {
			if err := b.Store.Redeliver(ctx, id, notBefore); !errors.Is(err, sender.ErrRedacted) {
				return err
			}
			return nil
		}
	}},
	"redaction begins anew each time": {[]string{"redaction/in batches"}, func(b *broken, _ *harness) {
		b.redact = func(ctx context.Context, p sender.RedactParams) (sender.Redacted, error) {
			if _, err := fmt.Sscanf(p.Cursor, "%d.", new(int)); err == nil {
				p.Cursor = ""
			}
			return b.Store.Redact(ctx, p)
		}
	}},
	"redaction cuts attempts off": {[]string{"redaction/in flight"}, func(b *broken, _ *harness) {
		redacted := false
		b.redact = func(ctx context.Context, p sender.RedactParams) (sender.Redacted, error) {
			redacted = true
			return b.Store.Redact(ctx, p)
		}
		b.batch = func(ctx context.Context, batch sender.Batch) (sender.Claims, error) {
			batch.Results = slices.Clone(batch.Results)
			for i := range batch.Results {
				if redacted {
					batch.Results[i].Token = 0
				}
			}
			return b.Store.RecordAndClaim(ctx, batch)
		}
	}},
	"unknown subscriber taken for none": {[]string{"redaction/refused"}, func(b *broken, _ *harness) {
		b.redact = func(ctx context.Context, p sender.RedactParams) (sender.Redacted, error) {
			got, err := b.Store.Redact(ctx, p)
			if errors.Is(err, sender.ErrNotFound) {
				return got, nil
			}
			return got, err
		}
	}},
}
