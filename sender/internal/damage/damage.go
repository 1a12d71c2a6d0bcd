// Package damage tells of rows that are missing or make no sense: somebody has changed
// the tables by hand, or has restored a part of them.
package damage

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	pause = time.Minute
	most  = 10_000
)

// Log tells once a minute of each subscription whose rows are damaged. It is safe for
// concurrent use.
type Log struct {
	to   *slog.Logger
	mu   sync.Mutex
	told map[int64]time.Time // by the subscription's number
}

// NewLog returns a Log that writes to a logger.
func NewLog(to *slog.Logger) *Log { return &Log{to: to, told: map[int64]time.Time{}} }

// Tell says what is wrong with a subscription, by its number, and what is done instead.
func (l *Log) Tell(ctx context.Context, subscription int64, wrong, instead string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if last, ok := l.told[subscription]; ok && now.Sub(last) < pause {
		return
	}
	if len(l.told) >= most {
		clear(l.told) // then all are told of once more
	}
	l.told[subscription] = now
	l.to.ErrorContext(ctx, "a subscription's rows are damaged; the others go on", "subscription_no", subscription, "wrong", wrong, "instead", instead)
}
