package main

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// floodEvery is how often a warning or an error of one kind is logged.
const floodEvery = time.Second

// unflooded passes on what is logged, but of warnings and errors of one kind one a second:
// the first at once, and then the last, with how many there were. While the database is
// away each request fails alike, and any visitor can have something logged. A kind is a
// message, and the operation or the subscription that it is about. Notices are logged one
// by one: each is something that somebody must learn.
func unflooded(next slog.Handler) *calmed {
	return &calmed{next: next, floods: &floods{kinds: map[floodKind]*flood{}}}
}

type calmed struct {
	next   slog.Handler
	floods *floods
}

type floodKind struct {
	level          slog.Level
	message, about string
}

type floods struct {
	mu    sync.Mutex
	kinds map[floodKind]*flood
}

// flood is what came of a kind since the last line.
type flood struct {
	more int
	last slog.Record
	to   slog.Handler
}

// Enabled implements slog.Handler.
func (c *calmed) Enabled(ctx context.Context, level slog.Level) bool {
	return c.next.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (c *calmed) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &calmed{c.next.WithAttrs(attrs), c.floods}
}

// WithGroup implements slog.Handler.
func (c *calmed) WithGroup(name string) slog.Handler {
	return &calmed{c.next.WithGroup(name), c.floods}
}

// Handle implements slog.Handler.
func (c *calmed) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return c.next.Handle(ctx, r)
	}
	kind, notice := floodKind{level: r.Level, message: r.Message}, false
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "operation", "subscription_id":
			kind.about = a.Value.String()
		case "notice_id":
			notice = true
		}
		return true
	})
	if notice {
		return c.next.Handle(ctx, r)
	}
	c.floods.mu.Lock()
	f := c.floods.kinds[kind]
	if f != nil {
		f.more, f.last, f.to = f.more+1, r.Clone(), c.next
		c.floods.mu.Unlock()
		return nil
	}
	c.floods.kinds[kind] = &flood{}
	c.floods.mu.Unlock()
	time.AfterFunc(floodEvery, func() { c.floods.ebb(kind) })
	return c.next.Handle(ctx, r)
}

// ebb logs what came of a kind, or forgets it if nothing did.
func (f *floods) ebb(kind floodKind) {
	f.mu.Lock()
	came := *f.kinds[kind]
	if came.more == 0 {
		delete(f.kinds, kind)
		f.mu.Unlock()
		return
	}
	f.kinds[kind] = &flood{}
	f.mu.Unlock()
	came.write()
	time.AfterFunc(floodEvery, func() { f.ebb(kind) })
}

func (f *flood) write() {
	if f.more > 1 {
		f.last.AddAttrs(slog.Int("and_before_it", f.more-1))
	}
	_ = f.to.Handle(context.Background(), f.last)
}

// flush logs what is left, at the end of the process.
func (c *calmed) flush() {
	c.floods.mu.Lock()
	defer c.floods.mu.Unlock()
	for _, f := range c.floods.kinds {
		if f.more > 0 {
			f.write()
			f.more = 0
		}
	}
}
