package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/rules"
)

const (
	// selectDeadInLines reads dead letters that hold back others, and whether they are dead
	// letters still: one may have been pruned.
	selectDeadInLines = `SELECT l.subscription, l.event, s.status, s.settings, EXISTS (SELECT 1 FROM surehook_ended x
			WHERE x.subscription = l.subscription AND x.event = l.event AND x.status = 'dead_lettered')
		FROM surehook_lines l INDEXED BY surehook_lines_dead CROSS JOIN surehook_subscriptions s ON s.no = l.subscription
		WHERE l.place = 3 AND (l.subscription, l.event) > (?, ?) ORDER BY l.subscription, l.event LIMIT ? + 0`
	// selectHalted reads the firsts of lines that halt.
	selectHalted = `SELECT subscription, event FROM surehook_lines INDEXED BY surehook_lines_halted WHERE halts = 1 LIMIT 100`
	clearHalted  = `UPDATE surehook_lines SET halts = 0 WHERE subscription = ? AND event = ? AND halts = 1 RETURNING object`

	freeLine = `DELETE FROM surehook_lines WHERE subscription = ? AND event = ? AND place = 3 RETURNING object`

	// oldestBehind reads when the first event was published that a dead letter holds back.
	// ?3: up to where the subscription has skipped.
	oldestBehind = `SELECT e.created_at FROM surehook_events e WHERE e.seq = (
		SELECT x.event FROM surehook_lines x INDEXED BY surehook_lines_object WHERE x.subscription = ?1 AND x.event > ?2 AND x.place IN (1, 2) AND ` + isTaken + `
			AND x.object = (SELECT object FROM surehook_lines WHERE subscription = ?1 AND event = ?2 AND place = 3) ORDER BY x.event LIMIT 1)`

	// deadLook is how many of them a sweep looks at.
	deadLook = 500
)

// deadLooked is up to where the sweeps have looked at dead letters in lines.
type deadLooked struct {
	sync.Mutex
	dispatch.DeliveryKey
}

// freeable finds dead letters that are not to hold back others any more: among the next
// ones, behind those that the sweep before has looked at.
func (s *Store) freeable(w *work) (found []dispatch.DeliveryKey, err error) {
	s.deadLooked.Lock()
	defer s.deadLooked.Unlock()
	n := 0
	from := s.deadLooked.DeliveryKey
	s.deadLooked.DeliveryKey = dispatch.DeliveryKey{}
	err = w.each(func(rows *sql.Rows) (bool, error) {
		var k dispatch.DeliveryKey
		var status sender.SubscriptionStatus
		var settings []byte
		var dead bool
		err := rows.Scan(&k.Subscription, &k.Event, &status, &settings, &dead)
		if set := sender.ReadSettings(settings); !dead || !rules.Holds(&set, status) {
			found = append(found, k)
		}
		if n++; n == deadLook {
			s.deadLooked.DeliveryKey = k
		}
		return true, err
	}, selectDeadInLines, from.Subscription, from.Event, deadLook)
	return found, err
}

// free takes dead letters out of their lines.
func (b *batch) free(all []dispatch.DeliveryKey) (freed int64, err error) {
	for _, k := range all {
		h, err := b.heads.any(k.Subscription)
		if err != nil {
			return freed, err
		}
		if h.missing {
			continue
		}
		n, err := b.left(h, freeLine, k.Subscription, k.Event)
		if err != nil {
			return freed, err
		}
		h.lined -= n
		freed += n
	}
	return freed, b.storeHeads()
}

// halted finds lines that halt, by their firsts.
func (w *work) halted() (found []dispatch.DeliveryKey, err error) {
	return found, w.each(func(rows *sql.Rows) (bool, error) {
		var k dispatch.DeliveryKey
		err := rows.Scan(&k.Subscription, &k.Event)
		found = append(found, k)
		return true, err
	}, selectHalted)
}

// goOnWithHalted lets lines advance that halted.
func (b *batch) goOnWithHalted(all []dispatch.DeliveryKey) error {
	for _, k := range all {
		h, err := b.heads.any(k.Subscription)
		if err != nil {
			return err
		}
		if h.missing {
			continue
		}
		if _, err := b.left(h, clearHalted, k.Subscription, k.Event); err != nil {
			return err
		}
	}
	return b.storeHeads()
}

// PassOver implements history.Store.
func (s *Store) PassOver(ctx context.Context, id string, notBefore time.Time) error {
	err := s.write(ctx, func(w *work) error {
		k, err := w.keyOf(id)
		if err != nil {
			return err
		}
		b := batch{work: w, store: s, now: s.now(), heads: newHeads(w)}
		if _, err := w.delivery(k, b.now); err != nil {
			return err
		}
		if err := b.behindWithin(k, notBefore); err != nil {
			return err
		}
		freed, err := b.free([]dispatch.DeliveryKey{k})
		if err == nil && freed == 0 {
			err = rules.HoldsNothing(id)
		}
		return err
	})
	switch {
	case errors.Is(err, sender.ErrNotFound):
		return fmt.Errorf("%w: delivery %q", sender.ErrNotFound, id)
	case err != nil:
		return fail("passing over a dead letter", err)
	}
	s.Wake()
	return nil
}

// behindWithin returns a *sender.RetentionError if a dead letter holds back what was
// published before notBefore.
func (b *batch) behindWithin(k dispatch.DeliveryKey, notBefore time.Time) error {
	h, err := b.heads.any(k.Subscription)
	if err != nil || h.missing || notBefore.IsZero() {
		return err
	}
	oldest := int64(never)
	if err := b.row(oldestBehind, k.Subscription, k.Event, h.skippedTo).Scan(&oldest); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	return rules.Within(timeOf(oldest), notBefore)
}

// waitedFor reads which delivery one that is behind waits for, and whether that is a dead
// letter. It is "" if the event is gone.
const waitedFor = `SELECT coalesce((SELECT id FROM surehook_events WHERE seq = l.event), ''), l.place = 3 FROM surehook_lines l
	WHERE l.subscription = ?1 AND l.event = coalesce(
		(SELECT event FROM surehook_lines INDEXED BY surehook_lines_ahead WHERE subscription = ?1 AND object = (SELECT object FROM surehook_lines WHERE subscription = ?1 AND event = ?2) AND place = 0),
		(SELECT event FROM surehook_lines INDEXED BY surehook_lines_object WHERE subscription = ?1 AND object = (SELECT object FROM surehook_lines WHERE subscription = ?1 AND event = ?2) ORDER BY event LIMIT 1))`

const holdsBack = `SELECT EXISTS (SELECT 1 FROM surehook_lines WHERE subscription = ? AND event = ? AND place = 3)`
