package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/rules"
)

// selectLeasedUnder reads all leases: they are as many as there are attempts in flight.
const selectLeasedUnder = `SELECT subscription, event, token FROM surehook_leases WHERE token IN (SELECT value FROM json_each(?)) ORDER BY subscription, event LIMIT ?`

const selectCreated = `SELECT seq, created_at FROM surehook_events WHERE seq IN (SELECT value FROM json_each(?))`

// LeasedUnder implements dispatch.Store.
func (s *Store) LeasedUnder(ctx context.Context, tokens []int64, limit int) (found []dispatch.Release, err error) {
	err = s.read(ctx, func(w *work) error {
		return fail("reading leases", w.each(func(rows *sql.Rows) (bool, error) {
			var r dispatch.Release
			err := rows.Scan(&r.Key.Subscription, &r.Key.Event, &r.Token)
			found = append(found, r)
			return true, err
		}, selectLeasedUnder, list(tokens), limit))
	})
	return found, err
}

// Release implements dispatch.Store.
func (s *Store) Release(ctx context.Context, rs []dispatch.Release) error {
	return s.write(ctx, func(w *work) error {
		b := batch{work: w, store: s, now: s.now(), heads: newHeads(w)}
		return fail("releasing", b.release(rs))
	})
}

func (b *batch) release(rs []dispatch.Release) error {
	leases := make([]lease, len(rs))
	for i, r := range rs {
		leases[i] = lease{r.Key, r.Token}
	}
	taken, err := b.takeLeases(leases)
	if err != nil {
		return err
	}
	created, err := b.created(taken)
	if err != nil {
		return err
	}
	for i, r := range rs {
		if taken[i] == nil {
			continue
		}
		if taken[i].number == 1 {
			if err := b.execs(removeKeptOf, r.Key.Event, r.Key.Subscription); err != nil {
				return err
			}
		}
		if err := b.takeBack(taken[i], created[taken[i].event], r.Due); err != nil {
			return err
		}
	}
	return b.storeHeads()
}

// created returns when the events of leases were created.
func (b *batch) created(taken []*live) (map[int64]time.Time, error) {
	created := map[int64]time.Time{}
	var events []int64
	for _, l := range taken {
		if l != nil {
			events = append(events, l.event)
		}
	}
	return created, b.each(func(rows *sql.Rows) (bool, error) {
		var event, at int64
		err := rows.Scan(&event, &at)
		created[event] = timeOf(at)
		return true, err
	}, selectCreated, list(events))
}

// takeBack undoes a claim, whose lease is taken away.
func (b *batch) takeBack(l *live, created, due time.Time) error {
	h := b.heads.by[l.subscription]
	h.lower(b.now) // it may have kept others back: see Settings.MaxInFlight
	skipped, err := b.skipped(h, l.epoch, l.event)
	if err != nil {
		return err
	}
	sub, err := b.known(l.subscription)
	if err != nil {
		return err
	}
	if skipped || sub.gone() || l.redacted {
		return b.endAll(h, []live{*l}, rules.Cancelled)
	}
	line, err := b.lineOf(h, l.event)
	if err != nil {
		return err
	}
	if line.Overtaken(sub.Settings.Order, l.event) {
		return b.endAll(h, []live{*l}, rules.Superseded)
	}
	amongResumed := due.IsZero() && l.number == 1 && h.resumedTo >= 0 && l.event > h.skippedTo
	back, due := rules.TakeBack(l.forDecision(), timeOf(l.claimedAt), created, l.epoch < h.epoch, due, timeOf(b.now))
	l.take(&back)
	if amongResumed && !line.Yields(l.event) {
		return b.waitResumed(h, l)
	}
	return b.goOn(h, l, micros(due), &line)
}
