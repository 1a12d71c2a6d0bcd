// Package hourly counts in memory what happens to each subscription in each hour, for stores
// that write it from time to time. A count costs no statement, and a row is written at most
// every few seconds, however much happens.
package hourly

import (
	"cmp"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/surehook/surehook/sender/history"
)

const (
	// A row is written this long after its first change.
	writeAfter = 10 * time.Second
	// So many rows are written at once, at most, unless all are asked for.
	writeMost = 1000
	// A row is kept this long after its hour: a transaction can end in the hour after.
	keep = time.Minute
)

// Key names the figures of a subscription, by its number, in the hour that begins at a time
// in UTC.
type Key struct {
	Subscription int64
	Hour         time.Time
}

// Row is what is to be stored for a key. Nobody else writes the row of a key and a shard, so
// it is written whole.
type Row struct {
	Key
	Shard int64
	Text  []byte // history.SubscriptionRollup, as JSON

	of      *row
	changes int
}

// Counts are what a process has counted. The zero value is empty. It is safe for concurrent
// use.
type Counts struct {
	mu   sync.Mutex
	rows map[Key]*row
}

type row struct {
	history.SubscriptionRollup
	shard           int64 // drawn for each row: one that was dropped is never written again
	changes, stored int
	changedAt       time.Time // the first time since it was stored
}

// Add changes the figures of subscriptions in the hour of a time, by the database's clock.
// change calls of for each of them.
func (c *Counts) Add(now time.Time, change func(of func(subscription int64) *history.SubscriptionRollup)) {
	hour := now.UTC().Truncate(time.Hour)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rows == nil {
		c.rows = map[Key]*row{}
	}
	change(func(subscription int64) *history.SubscriptionRollup {
		k := Key{subscription, hour}
		r := c.rows[k]
		if r == nil {
			r = &row{SubscriptionRollup: history.SubscriptionRollup{Hour: hour}, shard: rand.Int64()}
			c.rows[k] = r
		}
		if r.stored == r.changes {
			r.changedAt = now
		}
		r.changes++
		return &r.SubscriptionRollup
	})
}

// Unwritten returns the rows to be written now: those that changed ten seconds ago or
// earlier, the first ones first; or all that have changed. It drops rows that will not
// change any more.
func (c *Counts) Unwritten(now time.Time, all bool) (rows []Row, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, r := range c.rows {
		switch {
		case r.stored == r.changes:
			if now.Sub(k.Hour) > time.Hour+keep || k.Hour.After(now) {
				delete(c.rows, k)
			}
		case all || now.Sub(r.changedAt) >= writeAfter || now.Before(r.changedAt):
			rows = append(rows, Row{Key: k, Shard: r.shard, of: r, changes: r.changes})
		}
	}
	if !all && len(rows) > writeMost {
		slices.SortFunc(rows, func(x, y Row) int { return x.of.changedAt.Compare(y.of.changedAt) })
		rows = rows[:writeMost]
	}
	// In one order: two writers of one database must not wait for each other in a circle.
	slices.SortFunc(rows, func(x, y Row) int {
		return cmp.Or(cmp.Compare(x.Subscription, y.Subscription), x.Hour.Compare(y.Hour))
	})
	for i := range rows {
		if rows[i].Text, err = json.Marshal(&rows[i].of.SubscriptionRollup); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// Wrote notes that rows were stored.
func (c *Counts) Wrote(rows []Row, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range rows {
		r.of.stored, r.of.changedAt = r.changes, now
	}
}

// Here returns the figures that have changes that are not stored, for some subscriptions in
// the hours that began at from or later and before to, with their shards.
func (c *Counts) Here(subscriptions []int64, from, to time.Time) map[Key]Figures {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := map[Key]Figures{}
	for k, r := range c.rows {
		if r.stored != r.changes && !k.Hour.Before(from) && k.Hour.Before(to) && slices.Contains(subscriptions, k.Subscription) {
			found[k] = Figures{r.Clone(), r.shard}
		}
	}
	return found
}

// Figures are those of a key, as they are to be stored under a shard.
type Figures struct {
	history.SubscriptionRollup
	Shard int64
}

// Reading puts the figures of subscriptions together from the rows that are stored and those
// that are not stored yet.
type Reading struct {
	here map[Key]Figures
	by   map[Key]*history.SubscriptionRollup
}

// Read begins with what is counted here.
func (c *Counts) Read(subscriptions []int64, from, to time.Time) *Reading {
	r := &Reading{here: c.Here(subscriptions, from, to), by: map[Key]*history.SubscriptionRollup{}}
	for k := range r.here {
		f := r.here[k]
		r.by[k] = &f.SubscriptionRollup
	}
	return r
}

// Stored adds a stored row, unless it is an older state of what is counted here.
func (r *Reading) Stored(k Key, shard int64, text []byte) error {
	if here, known := r.here[k]; known && here.Shard == shard {
		return nil
	}
	var stored history.SubscriptionRollup
	if err := json.Unmarshal(text, &stored); err != nil {
		return err
	}
	stored.Hour = k.Hour
	if r.by[k] == nil {
		r.by[k] = &stored
	} else {
		r.by[k].Merge(&stored)
	}
	return nil
}

// Rollups returns the figures, by subscription in the order in which the numbers are given,
// then by hour. ids are those of the numbers.
func (r *Reading) Rollups(subscriptions []int64, ids []string) []history.SubscriptionRollup {
	place := map[int64]int{}
	for i, no := range subscriptions {
		place[no] = i
	}
	keys := make([]Key, 0, len(r.by))
	for k := range r.by {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(x, y Key) int {
		return cmp.Or(cmp.Compare(place[x.Subscription], place[y.Subscription]), x.Hour.Compare(y.Hour))
	})
	all := make([]history.SubscriptionRollup, len(keys))
	for i, k := range keys {
		all[i] = *r.by[k]
		all[i].Subscription = ids[place[k.Subscription]]
	}
	return all
}
