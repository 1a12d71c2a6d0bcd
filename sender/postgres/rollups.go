package postgres

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/surehook/surehook/sender"
)

const (
	upsertRollups = `INSERT INTO surehook_rollups (minute, shard, rollup) SELECT u.minute, $2, u.rollup FROM unnest($1::timestamptz[], $3::text[]) AS u(minute, rollup)
		ON CONFLICT (minute, shard) DO UPDATE SET rollup = excluded.rollup`
	selectRollup  = `SELECT rollup FROM surehook_rollups WHERE shard = $1 AND minute >= $2 ORDER BY minute DESC LIMIT 1`
	selectRollups = `SELECT rollup FROM surehook_rollups WHERE minute >= $1 AND minute < $2 ORDER BY minute`
)

// rollups are those of this process. A transaction that adds to one has it alone until
// it ends, and others take another one rather than wait: they hold locks. The first
// one also says how much there was to do.
type rollups struct {
	mu     sync.Mutex
	shards []*shard

	// How much there was to do as minutes began: the first minute after that of the
	// first shard's rollup, and the latest.
	after, latest measure
}

// shard is a rollup that is remembered from one transaction to the next: nobody else
// writes its rows.
type shard struct {
	number int64
	first  bool
	taken  bool
	rollup *sender.Rollup // as it was committed last
	unsure bool           // whether a transaction was committed that began in the minute since
	since  time.Time
}

// measure is how much there was to do as a minute began.
type measure struct {
	minute    time.Time
	backlog   int64
	oldestDue time.Time
}

// measure looks how much there is to do, once in a minute. It comes before what
// changes that.
func (w *work) measure() error {
	r := &w.rollups
	minute := w.minute()
	r.mu.Lock()
	known := !r.latest.minute.Before(minute) && !r.latest.minute.After(minute.Add(time.Minute))
	r.mu.Unlock()
	if known {
		return nil
	}
	c, err := w.counts()
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest = measure{minute, c.Live, c.OldestDue}
	if len(r.shards) == 0 || r.shards[0].rollup == nil || !r.after.minute.After(r.shards[0].rollup.Minute) {
		r.after = r.latest
	}
	return nil
}

func (w *work) minute() time.Time { return w.now.time().Truncate(time.Minute) }

// take gives a shard to a transaction, until that ends.
func (r *rollups) take(first int64) *shard {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.shards {
		if !s.taken {
			s.taken = true
			return s
		}
	}
	s := &shard{number: first + int64(len(r.shards)), first: len(r.shards) == 0, taken: true}
	r.shards = append(r.shards, s)
	return s
}

// giveBack ends a transaction's use of a shard.
func (r *rollups) giveBack(s *shard, rollup *sender.Rollup, committed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.taken = false
	if committed {
		s.rollup = rollup
	} else {
		s.unsure = true
	}
}

// tallied adds what a batch has done to the minute's rollup. It comes after all that
// is done, once.
func (b *batch) tallied() error {
	if b.rollup.Attempts()+b.rollup.Published+b.rollup.Deliveries == 0 {
		return nil
	}
	return b.tally(&b.rollup)
}

// tally adds to the rollup of the present minute, in the transaction.
func (w *work) tally(add *sender.Rollup) error {
	if err := w.measure(); err != nil {
		return err
	}
	s := w.rollups.take(w.shard)
	rollup := &sender.Rollup{Minute: w.minute()}
	w.after(func(committed bool) { w.rollups.giveBack(s, rollup, committed) })
	if s.unsure {
		if err := w.reread(s); err != nil {
			return err
		}
	}
	var rows []*sender.Rollup
	switch last := s.rollup; {
	case last != nil && !last.Minute.Before(rollup.Minute) && !last.Minute.After(rollup.Minute.Add(time.Minute)):
		*rollup = *last // or one that has begun after this transaction
		rollup.Failures = maps.Clone(last.Failures)
	case last != nil && last.Minute.After(rollup.Minute): // the clock was set back: its rows stay as they are
		s.number = rand.Int64()
	case s.first:
		if ended := w.rollups.begin(rollup, last); ended != nil {
			rows = append(rows, ended)
		}
	}
	s.since = rollup.Minute
	rollup.Merge(add)
	return w.storeRollups(s, append(rows, rollup))
}

// reread reads what is stored of a shard.
func (w *work) reread(s *shard) error {
	since := s.since
	if s.rollup != nil && s.rollup.Minute.Before(since) {
		since = s.rollup.Minute
	}
	var text string
	s.rollup = nil
	err := w.row(selectRollup, s.number, momentOf(since)).Scan(&text)
	if err == nil {
		s.rollup = &sender.Rollup{}
		err = json.Unmarshal([]byte(text), s.rollup)
	}
	if err == nil || errors.Is(err, sql.ErrNoRows) {
		s.unsure = false
		return nil
	}
	return err
}

// begin says in the rollup of a new minute how much there was to do, and in the last
// one, which it returns, how much there was when that ended.
func (r *rollups) begin(rollup, last *sender.Rollup) (ended *sender.Rollup) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rollup.Backlog, rollup.OldestDue = r.latest.backlog, r.latest.oldestDue
	if last == nil {
		return nil
	}
	m := r.latest
	if r.after.minute.After(last.Minute) {
		m = r.after
	}
	if last.Backlog == m.backlog && last.OldestDue.Equal(m.oldestDue) {
		return nil
	}
	again := *last
	again.Backlog, again.OldestDue = m.backlog, m.oldestDue
	return &again
}

func (w *work) storeRollups(s *shard, all []*sender.Rollup) error {
	minutes, texts := make([]moment, len(all)), make([]string, len(all))
	for i, r := range all {
		text, err := json.Marshal(r)
		if err != nil {
			return err
		}
		minutes[i], texts[i] = momentOf(r.Minute), string(text)
	}
	return w.joins(upsertRollups, minutes, s.number, texts)
}

// Rollups implements sender.QueryStore.
func (c *core) Rollups(ctx context.Context, from, to time.Time) (all []sender.Rollup, err error) {
	err = c.read(ctx, func(w *work) error {
		return w.each(func(rows rows) (bool, error) {
			var text string
			if err := rows.Scan(&text); err != nil {
				return false, err
			}
			var r sender.Rollup
			if err := json.Unmarshal([]byte(text), &r); err != nil {
				return false, err
			}
			if n := len(all); n > 0 && all[n-1].Minute.Equal(r.Minute) {
				all[n-1].Merge(&r)
			} else {
				all = append(all, r)
			}
			return true, nil
		}, selectRollups, momentOf(from), momentOf(to))
	})
	if err != nil {
		return nil, fail("reading rollups", err)
	}
	return all, nil
}
