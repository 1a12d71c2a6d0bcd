package postgres

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/surehook/surehook/sender/internal/pgrun"
)

const (
	// channel is where hints are sent. Their text is the schema, a slash, and the sending
	// process.
	channel = "surehook"

	// notifyGap is how long a process gathers hints before it sends one. PostgreSQL
	// lets transactions that notify commit one at a time, so a hint is a transaction of
	// its own, and there are few of them.
	notifyGap = 10 * time.Millisecond

	// Listen waits this long before it connects again.
	relistenMin = 100 * time.Millisecond
	relistenMax = 10 * time.Second
)

// hints are the hints that this process has for the others.
type hints struct {
	mu        sync.Mutex
	wanted    bool
	running   bool
	listening int // how many Listens run; above 0, this process has dispatchers itself
}

// Wake implements sender.Outbox. In a process without a dispatcher it hints to
// those of the others, a little later, and at most a hundred times a second.
func (c *core) Wake() {
	c.wakeHere()
	c.hints.mu.Lock()
	defer c.hints.mu.Unlock()
	if c.hints.listening == 0 {
		c.hintLater()
	}
}

// hintOthers hints to other processes that a subscription that they hold is due.
func (c *core) hintOthers() {
	c.hints.mu.Lock()
	defer c.hints.mu.Unlock()
	c.hintLater()
}

// hintLater has a hint sent. Its caller holds the lock.
func (c *core) hintLater() {
	c.hints.wanted = true
	if !c.hints.running {
		c.hints.running = true
		go c.sendHints()
	}
}

func (c *core) wakeHere() {
	select {
	case c.woken <- struct{}{}:
	default:
	}
}

// sendHints sends until no hint is wanted. An error loses a hint, and nothing else.
func (c *core) sendHints() {
	for {
		c.hints.mu.Lock()
		if !c.hints.wanted {
			c.hints.running = false
			c.hints.mu.Unlock()
			return
		}
		c.hints.wanted = false
		c.hints.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), relistenMax)
		_, _ = c.pool.Exec(ctx, `SELECT pg_notify($1, $2)`, channel, c.schema+"/"+c.name())
		cancel()
		time.Sleep(notifyGap)
	}
}

// Listen implements dispatch.Listener, on a connection of its own beside the pools. If it
// cannot listen, it logs why, once until it can again. Through a pooler it does not:
// see Config.Pooler.
func (c *core) Listen(ctx context.Context) {
	c.listens(1)
	defer c.listens(-1)
	if c.pooler { // a LISTEN there would stay on a connection that others get
		<-ctx.Done()
		return
	}
	wait, logged := relistenMin, false
	for ctx.Err() == nil {
		listened, err := c.listen(ctx)
		if listened {
			wait, logged = relistenMin, false
		}
		if !listened && !logged && ctx.Err() == nil {
			logged = true
			c.logger.WarnContext(ctx, "hints of other processes are not heard; what they publish is found by polling", "error", err)
		}
		pgrun.Sleep(ctx, wait)
		wait = min(2*wait, relistenMax)
	}
}

func (c *core) listens(n int) {
	c.hints.mu.Lock()
	defer c.hints.mu.Unlock()
	c.hints.listening += n
}

// listen passes hints on until its connection breaks, and reports whether it had one.
func (c *core) listen(ctx context.Context) (listened bool, err error) {
	cfg := c.pool.Config()
	cfg.ConnConfig.DialFunc = impatiently(cfg.ConnConfig.DialFunc)
	if cfg.BeforeConnect != nil {
		if err := cfg.BeforeConnect(ctx, cfg.ConnConfig); err != nil {
			return false, err
		}
	}
	conn, err := pgx.ConnectConfig(ctx, cfg.ConnConfig)
	if err != nil {
		return false, err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing)
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return false, err
	}
	c.wakeHere() // for hints that were sent before
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return true, err
		}
		if schema, from, _ := strings.Cut(n.Payload, "/"); schema == c.schema && from != c.name() {
			c.wakeHere()
		}
	}
}

// name identifies the hints of this store.
func (c *core) name() string { return strconv.FormatInt(c.shard, 36) }
