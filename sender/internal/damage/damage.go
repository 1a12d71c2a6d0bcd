// Package damage logs that rows are missing or make no sense: somebody has changed the
// tables by hand, or has restored a part of them.
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

// Log logs damaged rows, at most once a minute for each subscription. It is safe for
// concurrent use.
type Log struct {
	to     *slog.Logger
	mu     sync.Mutex
	logged map[int64]time.Time // by the subscription's number
}

// NewLog returns a Log that writes to a logger.
func NewLog(to *slog.Logger) *Log { return &Log{to: to, logged: map[int64]time.Time{}} }

// Tell logs that rows of a subscription, given by its number, are wrong, and how the
// store goes on instead.
func (l *Log) Tell(ctx context.Context, subscription int64, wrong, instead string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if last, ok := l.logged[subscription]; ok && now.Sub(last) < pause {
		return
	}
	if len(l.logged) >= most {
		clear(l.logged) // then each is logged once more
	}
	l.logged[subscription] = now
	l.to.ErrorContext(ctx, "a subscription's rows are damaged; the others go on", "subscription_no", subscription, "wrong", wrong, "instead", instead)
}
