package postgres

import (
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/surehook/surehook/sender/history"
)

const (
	// upsertRollups need not outlast a crash of the server: figures are not worth waiting
	// for its disk.
	upsertRollups = `INSERT INTO surehook_rollups (minute, shard, rollup) SELECT u.minute, u.shard, u.rollup FROM unnest($1::timestamptz[], $2::bigint[], $3::text[]) AS u(minute, shard, rollup)
		WHERE set_config('synchronous_commit', 'off', true) <> ''
		ON CONFLICT (minute, shard) DO UPDATE SET rollup = excluded.rollup`
	selectRollups = `SELECT minute, shard, rollup FROM surehook_rollups WHERE minute >= $1 AND minute < $2 ORDER BY minute`
)

// rollups are the counts of this process. Steps add to them in memory, once they are
// committed; Sweep writes those that changed. Nobody else writes their rows, so each is
// written whole.
type rollups struct {
	writing sync.Mutex // held while they are written; taken before mu

	mu       sync.Mutex
	minutes  []*minute // the last ones in which something happened, the oldest first
	measured measure   // the last one that was taken
	closed   time.Time // minutes up to this one are not remembered any more
}

// minute is a rollup that may still change.
type minute struct {
	history.Rollup
	shard           int64
	changes, stored int  // how often it was changed, and which change is written
	begun, closed   bool // whether the backlog is known as of its beginning, and its end
}

// measure is how much there was to do at the first look in a minute.
type measure struct {
	minute time.Time
	counts history.Counts
}

// minutesKept is how many written minutes are remembered: a transaction can add to the
// minute in which it began.
const minutesKept = 3

// tallied adds the counts of a batch to its minute's rollup, once it is committed.
func (b *batch) tallied() {
	if b.rollup.Attempts()+b.rollup.Published+b.rollup.Deliveries == 0 {
		return
	}
	b.after(func(committed bool) {
		if committed {
			b.rollups.add(b.now.time().Truncate(time.Minute), b.shard, &b.rollup)
		}
	})
}

func (r *rollups) add(at time.Time, shard int64, done *history.Rollup) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, there := slices.BinarySearchFunc(r.minutes, at, func(m *minute, at time.Time) int { return m.Minute.Compare(at) })
	if !there {
		if !at.After(r.closed) { // the clock was set back: its row stays as it is
			shard = rand.Int64()
		}
		r.minutes = slices.Insert(r.minutes, i, &minute{Rollup: history.Rollup{Minute: at}, shard: shard})
		r.minutes[i].noteBacklog(&r.measured)
	}
	r.minutes[i].Merge(done)
	r.minutes[i].changes++
}

// noteBacklog notes how much there was to do as the minute began, or after it ended.
func (m *minute) noteBacklog(now *measure) {
	ended := m.Minute.Before(now.minute)
	if ended && m.closed || !ended && (m.begun || m.Minute.After(now.minute)) {
		return
	}
	m.begun, m.closed = true, ended
	m.Waits(&now.counts)
	m.changes++
}

// storeRollups writes the counts that are not written yet, by the database's time.
func (c *core) storeRollups(ctx context.Context, now timestamp) error {
	r := &c.rollups
	r.writing.Lock()
	defer r.writing.Unlock()
	at := now.time().Truncate(time.Minute)
	if r.unmeasured(at) {
		counts, err := c.backlog(ctx)
		if err != nil {
			return err
		}
		r.noteBacklog(measure{at, counts})
	}
	changes, args, err := r.unwritten()
	if err != nil || len(changes) == 0 {
		return err
	}
	err = c.dispatching().writeAs(ctx, work{dates: true}, func(w *work) error { return w.execs(upsertRollups, args...) })
	if err != nil {
		return fail("storing rollups", err)
	}
	r.wrote(changes)
	return nil
}

// unmeasured tells whether the backlog must be counted: a minute with changes has ended, or
// the present one has its first.
func (r *rollups) unmeasured(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.minutes, func(m *minute) bool { return !m.closed && m.Minute.Before(now) || !m.begun && m.Minute.Equal(now) })
}

func (r *rollups) noteBacklog(now measure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.measured = now
	for _, m := range r.minutes {
		m.noteBacklog(&now)
	}
}

// unwritten returns the rollups that have changed, as rows to be written, and which change
// of each that is.
func (r *rollups) unwritten() (changes map[*minute]int, args []any, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var minutes []timestamp
	var shards []int64
	var texts []string
	changes = map[*minute]int{}
	for _, m := range r.minutes {
		if m.stored == m.changes {
			continue
		}
		text, err := json.Marshal(&m.Rollup)
		if err != nil {
			return nil, nil, err
		}
		changes[m] = m.changes
		minutes, shards, texts = append(minutes, timestampOf(m.Minute)), append(shards, m.shard), append(texts, string(text))
	}
	return changes, []any{minutes, shards, texts}, nil
}

// wrote notes which changes are written, and drops minutes that will hardly change.
func (r *rollups) wrote(changes map[*minute]int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for m, n := range changes {
		m.stored = n
	}
	for len(r.minutes) > minutesKept && r.minutes[0].closed && r.minutes[0].stored == r.minutes[0].changes {
		if first := r.minutes[0].Minute; first.After(r.closed) {
			r.closed = first
		}
		r.minutes = slices.Delete(r.minutes, 0, 1)
	}
}

// rollupKey names a row.
type rollupKey struct {
	minute timestamp
	shard  int64
}

// here returns the rollups of the minutes between two times that have changes that are not
// written.
func (r *rollups) here(from, to time.Time) map[rollupKey]history.Rollup {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[rollupKey]history.Rollup{}
	for _, m := range r.minutes {
		if m.stored != m.changes && !m.Minute.Before(from) && m.Minute.Before(to) {
			shown := m.Rollup
			shown.Failures = maps.Clone(m.Failures)
			all[rollupKey{timestampOf(m.Minute), m.shard}] = shown
		}
	}
	return all
}

// Rollups implements history.Store. Counts of this process are in them at once, and
// those of others within a second.
func (c *core) Rollups(ctx context.Context, from, to time.Time) (all []history.Rollup, err error) {
	here := c.rollups.here(from, to)
	var stored []storedMinute
	err = c.read(ctx, func(w *work) error {
		stored, err = w.minutes(from, to)
		return err
	})
	if err == nil {
		all, err = rollupsOf(stored, from, here)
	}
	if err != nil {
		return nil, fail("reading rollups", err)
	}
	return all, nil
}

// storedMinute is a row of surehook_rollups. A caller that reads many of them decodes them
// after the transaction. Decoding takes long in a process that gets little of its
// processor, and the server gives up transactions that stand still.
type storedMinute struct {
	rollupKey
	text string
}

func (w *work) minutes(from, to time.Time) (all []storedMinute, err error) {
	err = w.each(func(rows rows) (bool, error) {
		var m storedMinute
		err := rows.Scan(&m.minute, &m.shard, &m.text)
		all = append(all, m)
		return true, err
	}, selectRollups, timestampOf(from), timestampOf(to))
	return all, err
}

// rollupsOf returns the rollups from a time on. For a minute and shard that this process still
// counts, it takes the count in memory in place of the stored row.
func rollupsOf(stored []storedMinute, from time.Time, here map[rollupKey]history.Rollup) (all []history.Rollup, err error) {
	for i := range stored {
		if _, known := here[stored[i].rollupKey]; known {
			continue
		}
		var r history.Rollup
		if err := json.Unmarshal([]byte(stored[i].text), &r); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	for k, r := range here {
		if !k.minute.time().Before(from) {
			all = append(all, r)
		}
	}
	return byMinute(all), nil
}

// byMinute merges the rollups of each minute.
func byMinute(all []history.Rollup) (merged []history.Rollup) {
	slices.SortFunc(all, func(a, b history.Rollup) int { return a.Minute.Compare(b.Minute) })
	for i := range all {
		if n := len(merged); n > 0 && merged[n-1].Minute.Equal(all[i].Minute) {
			merged[n-1].Merge(&all[i])
		} else {
			merged = append(merged, all[i])
		}
	}
	return merged
}
