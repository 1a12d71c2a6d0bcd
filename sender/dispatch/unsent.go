package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/post"
)

// maxUnsent bounds how many subscribers are remembered. When there are more, all are
// forgotten, and logged once more.
const maxUnsent = 10_000

// probedPause is how long a delivery waits whose proxy was failing.
const probedPause = time.Minute

// unreadPause is how long a delivery waits whose secret could not be read, or whose body could
// not be kept.
const unreadPause = time.Second

// errProxyProbed tells that an attempt is not made now, because its proxy is failing.
var errProxyProbed = fmt.Errorf("%w: %w", sender.ErrProxy, post.ErrProbed)

// reportPutOff counts a claim that is put off, and calls the hook. It is never called under p.mu.
func (p *pump) reportPutOff(ctx context.Context, c *Claimed, reason PutOffReason, pause time.Duration) {
	p.mu.Lock()
	p.stats.PutOff++
	p.mu.Unlock()
	if hook := p.d.cfg.Hooks.PutOff; hook != nil {
		p.d.guarded(ctx, "PutOff", func() { hook(ctx, PutOff{c, reason, pause}) })
	}
}

// unsentLog remembers for which subscribers it was logged that nothing can be sent to them.
// It is logged once in secretPause, however many deliveries wait.
type unsentLog struct {
	mu     sync.Mutex
	logged map[int64]time.Time // by the subscriber's number
}

// due reports whether to log it now.
func (u *unsentLog) due(subscriber int64, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if last, ok := u.logged[subscriber]; ok && now.Sub(last) < secretPause {
		return false
	}
	if len(u.logged) >= maxUnsent {
		clear(u.logged)
	}
	u.logged[subscriber] = now
	return true
}

// pauseAfter is how long a delivery waits that could not be sent, most often because its
// secret could not be opened. The pause is short after an error of the database, because a
// database that was away is back soon.
func pauseAfter(err error) time.Duration {
	switch {
	case errors.Is(err, errKeyringUnread):
		return unreadPause
	case errors.Is(err, errProxyProbed):
		return probedPause
	}
	return secretPause
}
