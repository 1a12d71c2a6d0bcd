package catchup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/surehook/surehook/receiver"
)

// pass is one reading of the feed.
type pass[Tx any] struct {
	*Catchup[Tx]
	at     string // the cursor up to which everything was taken
	limit  int    // how many events are asked for
	report Report
	oldest time.Time // when the first of the last page's events occurred
	gaps   int       // so far

	save   bool   // the cursor is to be stored,
	stored string // as it was last
	saved  time.Time
}

// follow takes the next page, or waits for one. An error is ctx's.
func (p *pass[Tx]) follow(ctx context.Context) error {
	p.report = Report{} // nobody reads it, and it must not grow
	asked := time.Now()
	page, err := p.page(ctx, p.cfg.Wait)
	if err != nil {
		return err
	}
	last := p.isLast(page)
	if err := p.take(ctx, page); err != nil {
		return err
	}
	if last && time.Since(asked) < askEvery {
		sleep(ctx, askEvery/2+rand.N(askEvery))
	}
	return nil
}

// toEnd takes all pages until an empty one, or one that is beyond the present: where
// events come faster than pages are taken, there is never an empty one. An error is
// ctx's.
func (p *pass[Tx]) toEnd(ctx context.Context) error {
	for end := time.Now().Add(beyondPresent); ; {
		page, err := p.page(ctx, 0)
		last := p.isLast(page)
		if err == nil {
			err = p.take(ctx, page)
		}
		p.report.Next = p.at
		if err != nil || last || p.oldest.After(end) {
			return err
		}
	}
}

// isLast tells whether nothing follows a page now: it is empty, or it leads to itself.
func (p *pass[Tx]) isLast(page Page) bool { return len(page.Events) == 0 || page.Next == p.at }

func (p *pass[Tx]) reconcileEvery(ctx context.Context) error {
	for ctx.Err() == nil {
		p.report = Report{}
		err := p.toEnd(ctx)
		if err == nil {
			err = p.store(ctx)
		}
		if err != nil {
			break // of ctx
		}
		if hook := p.cfg.Hooks.Reconciled; hook != nil {
			p.hook(ctx, func() { hook(ctx, p.report) })
		}
		// Varied, so that many consumers do not come together.
		sleep(ctx, p.cfg.Every*9/10+rand.N(p.cfg.Every/5+1))
	}
	return nil
}

// page reads a page until it succeeds. After a page that was too large, or too slow, it asks for
// fewer events, and for more again later. An error is ctx's.
func (p *pass[Tx]) page(ctx context.Context, wait time.Duration) (Page, error) {
	for try := 0; ; try++ {
		page, err := p.ask(ctx, p.at, p.limit, wait)
		var expired *ExpiredError
		if err == nil {
			err = CheckCursor(page.Next)
		} else if errors.As(err, &expired) && expired.Next != "" {
			err = cmp.Or(CheckCursor(expired.Next), err)
		}
		var large *PageTooLargeError
		var status *StatusError
		var after time.Duration
		switch {
		case err == nil:
			p.limit = min(p.limit+p.limit/4+1, p.cfg.Limit)
			return page, nil
		case ctx.Err() != nil:
			return Page{}, ctx.Err()
		case errors.As(err, &expired) && expired.Next != p.at:
			p.gap(ctx, expired.Next)
			if p.gaps++; p.gaps == 1 { // a sender that sends us back for ever is not to be asked without a pause
				continue
			}
		case errors.Is(err, ErrPageTooLarge) && p.limit > 1:
			p.limit /= 2
			continue
		case errors.As(err, &large) && large.Next != "" && large.Next != p.at:
			p.refuse(ctx, "", err)
			p.at, p.limit, try = large.Next, p.cfg.Limit, -1
			continue
		case errors.Is(err, context.DeadlineExceeded): // a slow line would fail with the same page again
			p.limit = max(1, p.limit/2)
		case errors.As(err, &status):
			after = status.RetryAfter
		}
		if !p.pause(ctx, try, "", err, after) {
			return Page{}, ctx.Err()
		}
	}
}

// gap goes on behind the events that are not kept any more, and reports them.
func (p *pass[Tx]) gap(ctx context.Context, next string) {
	g := Gap{After: p.at, Next: next}
	p.report.Gaps = append(p.report.Gaps, g)
	p.log().LogAttrs(ctx, slog.LevelError, "catchup: events are missing: the sender does not keep what follows the cursor any more",
		slog.String("feed", p.cfg.Name), slog.String("after", g.After), slog.String("next", g.Next))
	if hook := p.cfg.Hooks.Gap; hook != nil {
		p.hook(ctx, func() { hook(ctx, g) })
	}
	p.at = next
}

// head has the fields of an event that are read before it is taken.
type head struct {
	ID         string    `json:"id"`
	OccurredAt time.Time `json:"occurred_at"`
	Redacted   bool      `json:"redacted"`
}

// take brings a page's events to their ends, one after the other. The cursor is
// stored with the last one. An error is of ctx.
func (p *pass[Tx]) take(ctx context.Context, page Page) error {
	for i, body := range page.Events {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var h head
		_ = json.Unmarshal(body, &h) // what is no event is refused by the receiver
		if CheckName(h.ID) != nil {
			h.ID = "" // it can be as long as the body, and is for reports and logs
		}
		if i == 0 || h.OccurredAt.Before(p.oldest) {
			p.oldest = h.OccurredAt
		}
		if h.Redacted {
			p.report.Seen++
			p.report.Redacted++
			continue
		}
		p.settle(ctx, h.OccurredAt)
		t := receiver.Trusted[Tx]{Body: body, Scope: p.cfg.Scope}
		last := i == len(page.Events)-1
		if last && p.save {
			t.Then = func(ctx context.Context, tx Tx) error { return p.cursors.SetCursor(ctx, tx, p.cfg.Name, page.Next) }
		}
		res, err := p.applyOne(ctx, h.ID, t)
		switch {
		case errors.Is(err, receiver.ErrNotKept):
			p.refuse(ctx, h.ID, err)
			continue
		case err != nil:
			return err
		}
		p.report.add(h.ID, res)
		if t.Then != nil {
			p.stored, p.saved = page.Next, time.Now()
		}
	}
	p.at = page.Next
	if len(page.Events) > 0 || time.Since(p.saved) >= saveEvery {
		return p.store(ctx)
	}
	return nil
}

// settle waits until an event is old enough, for Config.Settle at most: the sender's
// clock may be ahead of ours.
func (p *pass[Tx]) settle(ctx context.Context, occurred time.Time) {
	if p.cfg.Settle == 0 || occurred.IsZero() {
		return
	}
	if young := min(time.Until(occurred.Add(p.cfg.Settle)), p.cfg.Settle); young > 0 {
		sleep(ctx, young)
	}
}

// applyOne tries until the event is taken, or can never be: then it is kept as a dead
// letter. An error is ctx's, or matches ErrNotKept.
func (p *pass[Tx]) applyOne(ctx context.Context, id string, t receiver.Trusted[Tx]) (receiver.Result, error) {
	for try := 0; ; try++ {
		res, err := p.rcv.Apply(ctx, t, p.todo)
		if failed, ok := errors.AsType[*receiver.Error](err); ok && failed.Permanent() {
			if res, err = p.rcv.SetAside(ctx, t, p.todo, failed); errors.Is(err, receiver.ErrNotKept) {
				return "", fmt.Errorf("%w; %w", failed, errors.Unwrap(err))
			}
		}
		if err == nil {
			return res, nil
		}
		if !p.pause(ctx, try, id, err, 0) {
			return "", ctx.Err()
		}
	}
}

// store stores a cursor that no event has brought. An error is ctx's.
func (p *pass[Tx]) store(ctx context.Context) error {
	for try := 0; p.save && p.at != p.stored && p.at != ""; try++ {
		at := p.at
		err := p.transact(ctx, func(ctx context.Context, tx Tx) error { return p.cursors.SetCursor(ctx, tx, p.cfg.Name, at) })
		if err == nil {
			p.stored, p.saved = at, time.Now()
			return nil
		}
		if !p.pause(ctx, try, "", fmt.Errorf("catchup: storing the cursor: %w", err), 0) {
			return ctx.Err()
		}
	}
	return nil
}
