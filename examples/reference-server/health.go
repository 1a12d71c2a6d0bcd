package main

import (
	"context"
	"net/http"
	"time"
)

// Health is the answer of a service that works.
type Health struct {
	Status  string `json:"status" enum:"ok"`
	Version string `json:"version"`
}

func (s *server) healthOperations() {
	handle(s, operation{method: http.MethodGet, path: "/healthz", id: "health", summary: "Tell whether the database answers", tag: "Service", who: everybody}, s.health)
}

func (s *server) health(ctx context.Context, _ caller, _ *struct{}) (*answer[Health], error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	var n int
	if err := s.db.row(ctx, nil, "SELECT count(*) FROM server_migrations").Scan(&n); err != nil {
		p := problem(http.StatusServiceUnavailable, "the database does not answer")
		p.retryAfter, p.cause = retrySeconds, err
		return nil, p
	}
	return &answer[Health]{Health{Status: "ok", Version: version()}}, nil
}
