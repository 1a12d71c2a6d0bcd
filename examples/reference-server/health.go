package main

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/surehook/surehook/sender"
)

// Health is the answer of a service that works.
type Health struct {
	Status  string `json:"status" enum:"ok" doc:"It says so, or the answer is 503."`
	Version string `json:"version" doc:"The program's version." example:"v1.0.0"`
}

const healthTimeout = 3 * time.Second

func (s *server) healthOperations() {
	handle(s, operation{method: http.MethodGet, path: "/healthz", id: "health", summary: "Tell whether the database answers", tag: "Service", who: everybody}, s.health)
	handle(s, operation{method: http.MethodGet, path: "/readyz", id: "ready", summary: "Tell whether the service can work", tag: "Service", who: everybody}, s.ready)
}

// answers is nil if the database does.
func (d *database) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	var n int
	return d.row(ctx, nil, "SELECT count(*) FROM server_migrations").Scan(&n)
}

func (s *server) health(ctx context.Context, _ caller, _ *struct{}) (*answer[Health], error) {
	if err := s.db.answers(ctx); err != nil {
		return nil, unavailable("the database does not answer", err)
	}
	return &answer[Health]{Health{Status: "ok", Version: version()}}, nil
}

// readiness remembers for a second what was found: everybody may ask, and it writes.
type readiness struct {
	mu  sync.Mutex
	at  time.Time
	err error
}

// readinessKept is for how long a result also answers the next caller.
const readinessKept = time.Second

func (r *readiness) check(find func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.at) >= readinessKept {
		r.err, r.at = find(), time.Now()
	}
	return r.err
}

func (s *server) ready(ctx context.Context, _ caller, _ *struct{}) (*answer[Health], error) {
	err := s.readiness.check(func() error {
		// The first to ask may have gone.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), healthTimeout)
		defer cancel()
		return s.db.fit(ctx)
	})
	switch {
	case errors.Is(err, sender.ErrUnfit):
		return nil, unavailable("the database is not fit for this version: the log says why", err)
	case full(err):
		return nil, refusal(err)
	case err != nil:
		return nil, unavailable("the database takes no writes just now", err)
	}
	return &answer[Health]{Health{Status: "ok", Version: version()}}, nil
}

// check is nil if the library can work with the server, its settings and the tables.
func (d *database) check(ctx context.Context) error {
	return errors.Join(d.sender.Check(ctx), d.jobs.Check(ctx))
}

// fit is nil if check is, and a write is committed.
func (d *database) fit(ctx context.Context) error {
	if err := d.check(ctx); err != nil {
		return err
	}
	return d.inTx(ctx, func(tx *sql.Tx) error {
		_, err := d.exec(ctx, tx, "INSERT INTO server_readiness VALUES (1, $1) ON CONFLICT (one) DO UPDATE SET at = excluded.at", time.Now().UnixMicro())
		return err
	})
}
