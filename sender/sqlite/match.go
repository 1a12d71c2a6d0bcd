package sqlite

import (
	"cmp"
	"database/sql"
	"math"
	"slices"

	"github.com/surehook/surehook/sender/rules"
)

// question asks which subscriptions ask for a type of event: those of one subscriber, or
// everyone's.
type question struct {
	eventType  string
	subscriber int64 // 0: everyone's
}

// match is a subscription that asks for the type. It gets the events after since, up to
// and including until, if its filter matches them.
type match struct {
	subscription, since, until int64
	filtered                   bool // it has a filter
}

const (
	selectMatches = `SELECT subscription, since, until, filtered FROM surehook_patterns
		WHERE pattern = ? AND subscriber = ? + 0 AND subscription > ? ORDER BY subscription LIMIT ? + 0`
	selectAllMatches = `SELECT subscription, since, until, filtered FROM surehook_patterns
		WHERE pattern = ? AND subscription > ? ORDER BY subscription LIMIT ? + 0`
)

// matches returns the matches with subscriptions above after, in their order, and the
// subscription up to which they are complete: math.MaxInt64 if none follows. It reads at
// most limit of each pattern.
func (k *registryCache) matches(w *work, q question, after int64, limit int) (found []match, upTo int64, err error) {
	if all, ok := k.matched.Get(q); ok {
		from, _ := slices.BinarySearchFunc(all, after+1, func(a match, no int64) int { return cmp.Compare(a.subscription, no) })
		return all[from:], math.MaxInt64, nil
	}
	upTo = math.MaxInt64
	for _, pattern := range rules.Patterns(q.eventType) {
		n := 0
		add := func(rows *sql.Rows) (bool, error) {
			var a match
			err := rows.Scan(&a.subscription, &a.since, &a.until, &a.filtered)
			found = append(found, a)
			if n++; n == limit {
				upTo = min(upTo, a.subscription)
			}
			return true, err
		}
		if q.subscriber == 0 {
			err = w.each(add, selectAllMatches, pattern, after, limit)
		} else {
			err = w.each(add, selectMatches, pattern, q.subscriber, after, limit)
		}
		if err != nil {
			return nil, 0, err
		}
	}
	found = sorted(found, upTo)
	if upTo == math.MaxInt64 && after == 0 {
		k.remember(q, found)
	}
	return found, upTo, nil
}

// remember keeps a complete answer. While too many matches are kept, it forgets the
// answer that was used longest ago.
func (k *registryCache) remember(q question, found []match) {
	k.matched.Put(q, found)
	for k.size += len(found) + 1; k.size > registryCacheLimit; {
		oldest, _ := k.matched.DeleteOldest()
		k.size -= len(oldest) + 1
	}
}

// sorted returns the matches up to a subscription, each once.
func sorted(all []match, upTo int64) []match {
	// If several patterns of a subscription match, the oldest says since when it gets
	// events.
	slices.SortFunc(all, func(a, b match) int {
		return cmp.Or(cmp.Compare(a.subscription, b.subscription), cmp.Compare(a.since, b.since))
	})
	all = slices.CompactFunc(all, func(a, b match) bool { return a.subscription == b.subscription })
	n, _ := slices.BinarySearchFunc(all, upTo, func(a match, no int64) int {
		if a.subscription <= no {
			return -1
		}
		return 1
	})
	return all[:n:n]
}
