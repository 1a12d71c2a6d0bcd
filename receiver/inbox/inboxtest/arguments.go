package inboxtest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/surehook/surehook/receiver/inbox"
)

func argumentRules[Tx any]() []rule[Tx] {
	return []rule[Tx]{
		{"arguments", "What cannot be kept or claimed is refused with ErrInvalid, and changes nothing.", arguments[Tx]},
		{"no-transaction", "A transaction that is nil is refused with ErrInvalid.", noTransaction[Tx]},
	}
}

func cancelled(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx, cancel
}

func arguments[Tx any](e *env[Tx]) {
	bad := map[string]func(r *inbox.Record){
		"no scope":           func(r *inbox.Record) { r.Scope = "" },
		"a long scope":       func(r *inbox.Record) { r.Scope = strings.Repeat("s", 129) },
		"no id":              func(r *inbox.Record) { r.ID = "" },
		"an id with a stop":  func(r *inbox.Record) { r.ID = "a.b" },
		"a long id":          func(r *inbox.Record) { r.ID = strings.Repeat("i", 129) },
		"no line":            func(r *inbox.Record) { r.Line = "" },
		"a long line":        func(r *inbox.Record) { r.Line = strings.Repeat("l", 401) },
		"no type":            func(r *inbox.Record) { r.Type = "" },
		"a version below 0":  func(r *inbox.Record) { r.Version = -1 },
		"a version too high": func(r *inbox.Record) { r.Version = 1 << 53 },
	}
	for name, spoil := range bad {
		r := event("line", "a", 1)
		spoil(&r)
		if fresh, err := e.tryRecord(r); !errors.Is(err, inbox.ErrInvalid) || fresh {
			e.Errorf("recording an event with %s: %t, %v", name, fresh, err)
		}
	}
	for _, c := range []struct {
		limit int
		lease time.Duration
	}{{0, long}, {-1, long}, {1, 0}, {1, -long}} {
		if _, err := e.tryClaim(scope, c.limit, c.lease); !errors.Is(err, inbox.ErrInvalid) {
			e.Errorf("claiming %d for %v: %v", c.limit, c.lease, err)
		}
	}
	if s := e.status(); s.Events != 0 {
		e.Errorf("%d events are there of those that were refused", s.Events)
	}
}

func noTransaction[Tx any](e *env[Tx]) {
	var none Tx
	_, record := e.Store.RecordTx(e.ctx, none, event("line", "a", 1))
	_, claim := e.Store.ClaimTx(e.ctx, none, scope, 1, long)
	_, status := e.Store.StatusTx(e.ctx, none, scope)
	_, late := e.Store.OverdueTx(e.ctx, none, scope, long)
	c := inbox.Claim{Record: event("line", "a", 1), Token: 1}
	for name, err := range map[string]error{
		"RecordTx": record, "ClaimTx": claim, "StatusTx": status, "OverdueTx": late,
		"FinishTx": e.Store.FinishTx(e.ctx, none, c), "RetryTx": e.Store.RetryTx(e.ctx, none, c, 0, ""),
	} {
		if !errors.Is(err, inbox.ErrInvalid) {
			e.Errorf("%s without a transaction: %v", name, err)
		}
	}
}
