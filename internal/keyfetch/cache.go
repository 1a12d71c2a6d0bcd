package keyfetch

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// CacheConfig has the settings of a Cache. The zero value and nil are valid.
type CacheConfig struct {
	// KeepFor is how long a value is used before it is fetched again. Defaults to 1 h.
	KeepFor time.Duration
	// StaleFor is how much longer a value is used while it cannot be fetched again. Keys that
	// the sender has taken back pass for that long if its host is away. 0 is not at all.
	StaleFor time.Duration
	// KeepFailure is how long a failure is remembered. Defaults to 10 s.
	KeepFailure time.Duration
	// RenewEvery is how often Renew has the same name fetched. Defaults to 30 s.
	RenewEvery time.Duration
	// AtOnce fetches are made in a row, over all names that have no value, and then one in each
	// FetchEvery. A name that has had one is fetched again without regard to them, so that
	// strangers who ask for other names do not end it: KeepFor, KeepFailure and RenewEvery bound
	// that, and MaxKept.
	// They default to 8 and 10 s.
	AtOnce     int
	FetchEvery time.Duration
	// MaxKept bounds the names that are remembered. Defaults to 16.
	MaxKept int
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
}

// Fetch gets what has that name, and says until when it may be used: the zero time is no
// limit of its own.
type Fetch[V any] func(ctx context.Context, name string) (V, time.Time, error)

// Cache keeps what Fetch returns. It is safe for concurrent use, and starts nothing.
//
// Those who want the same at the same time share one fetch, which goes on if one of them has
// gone. So Fetch gets a context that does not end, and must have a timeout.
type Cache[V any] struct {
	cfg    CacheConfig
	fetch  Fetch[V]
	flight singleflight.Group

	mu        sync.Mutex
	kept      map[string]*entry[V]
	remaining int
	at        time.Time // when remaining had this value
}

// entry is a value, or a failure, or a value and the failure to get it again.
type entry[V any] struct {
	value      V
	there      bool
	fetched    time.Time
	fresh      time.Time // until then it is not fetched again
	usable     time.Time
	err        error
	remembered time.Time // until then err is
}

// ErrOver: what was fetched may not be used any more.
var ErrOver = errors.New("keyfetch: what the host has is no longer valid")

// ErrTooMany: more is asked for than the bounds of a Cache allow, so that nothing was fetched.
var ErrTooMany = errors.New("keyfetch: too many keys were asked for lately")

// NewCache returns an empty cache of what fetch returns.
func NewCache[V any](fetch Fetch[V], cfg *CacheConfig) *Cache[V] {
	c := &Cache[V]{fetch: fetch, kept: map[string]*entry[V]{}}
	if cfg != nil {
		c.cfg = *cfg
	}
	orDefault(&c.cfg.KeepFor, time.Hour)
	orDefault(&c.cfg.KeepFailure, 10*time.Second)
	orDefault(&c.cfg.RenewEvery, 30*time.Second)
	orDefault(&c.cfg.AtOnce, 8)
	orDefault(&c.cfg.FetchEvery, 10*time.Second)
	orDefault(&c.cfg.MaxKept, 16)
	if c.cfg.Now == nil {
		c.cfg.Now = time.Now
	}
	return c
}

func orDefault[T time.Duration | int](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// Get returns the value of that name, which is fetched if none is kept. An error says that
// it cannot be had now.
func (c *Cache[V]) Get(name string) (V, error) { return c.get(name, false) }

// Renew returns a value that was fetched within RenewEvery. It is for a list of keys in which
// one is missing that a request names: the sender may have a new one since.
func (c *Cache[V]) Renew(name string) (V, error) { return c.get(name, true) }

func (c *Cache[V]) get(name string, anew bool) (V, error) {
	if value, err, ok := c.look(name, anew); ok {
		return value, err
	}
	// The error is of this flight alone; what it means is for look to say.
	_, _, _ = c.flight.Do(name, func() (any, error) {
		if _, _, ok := c.look(name, anew); !ok && c.allow(name) {
			value, until, err := c.fetch(context.Background(), name)
			c.keep(name, value, until, err)
		}
		return nil, nil
	})
	if value, err, ok := c.look(name, anew); ok {
		return value, err
	}
	if value, ok := c.stale(name); ok && !anew {
		return value, nil
	}
	var none V
	return none, ErrTooMany
}

// look returns what is known without a fetch, and whether that is enough.
func (c *Cache[V]) look(name string, anew bool) (value V, err error, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, now := c.kept[name], c.cfg.Now()
	switch {
	case e == nil:
		return value, nil, false
	case e.there && !anew && now.Before(e.fresh), e.there && anew && now.Before(e.fetched.Add(c.cfg.RenewEvery)) && now.Before(e.usable):
		return e.value, nil, true
	case !now.Before(e.remembered):
		return value, nil, false
	case e.there && !anew && now.Before(e.usable):
		return e.value, nil, true
	}
	return value, e.err, true
}

// stale returns a value that is due to be fetched again and may still be used.
func (c *Cache[V]) stale(name string) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.kept[name]; e != nil && e.there && c.cfg.Now().Before(e.usable) {
		return e.value, true
	}
	return value, false
}

func (c *Cache[V]) keep(name string, value V, until time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, now := c.kept[name], c.cfg.Now()
	if err == nil && !until.IsZero() && !now.Before(until) {
		err = ErrOver
	}
	if e == nil {
		c.makeRoom()
		e = &entry[V]{}
		c.kept[name] = e
	}
	if err != nil {
		e.err, e.remembered = err, now.Add(c.cfg.KeepFailure)
		return
	}
	*e = entry[V]{value: value, there: true, fetched: now, fresh: now.Add(c.cfg.KeepFor)}
	e.usable = e.fresh.Add(c.cfg.StaleFor)
	if !until.IsZero() && until.Before(e.usable) {
		e.usable = until
	}
	if e.usable.Before(e.fresh) {
		e.fresh = e.usable
	}
}

// makeRoom forgets failures first, also those that are newer than a value's end: the value's
// name would have to wait for a fetch. Then it forgets what ends first.
func (c *Cache[V]) makeRoom() {
	for len(c.kept) >= c.cfg.MaxKept {
		var first string
		for name, e := range c.kept {
			if first == "" || e.goesBefore(c.kept[first]) {
				first = name
			}
		}
		delete(c.kept, first)
	}
}

func (e *entry[V]) goesBefore(other *entry[V]) bool {
	switch {
	case e.there != other.there:
		return other.there
	case e.there:
		return e.usable.Before(other.usable)
	}
	return e.remembered.Before(other.remembered)
}

func (c *Cache[V]) allow(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.kept[name]; e != nil && e.there {
		return true
	}
	now := c.cfg.Now()
	if c.at.IsZero() || now.Before(c.at) {
		c.remaining, c.at = c.cfg.AtOnce, now
	}
	if more := int(now.Sub(c.at) / c.cfg.FetchEvery); more > 0 {
		c.remaining, c.at = min(c.cfg.AtOnce, c.remaining+more), now
	}
	if c.remaining == 0 {
		return false
	}
	c.remaining--
	return true
}
