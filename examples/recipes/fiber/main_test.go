package main

import (
	"context"
	"database/sql"
	"net"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/examples/recipes/recipetest"
)

func TestReceives(t *testing.T) {
	bed := recipetest.New(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := routes(bed.App)
	ended := make(chan error, 1)
	go func() { ended <- f.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true}) }()
	recipetest.Check(t, bed, recipetest.PostTo(t, "http://"+listener.Addr().String()+"/webhooks"))
	require.NoError(t, f.Shutdown())
	require.NoError(t, <-ended)
}

// The server also removes old markers, and ends when it is asked to.
func TestServeRemovesOldMarkers(t *testing.T) {
	bed := recipetest.New(t)
	db, err := sql.Open("pgx", bed.URL)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	_, err = db.ExecContext(t.Context(), "INSERT INTO surehook_dedup_markers VALUES ('billing', 'evt_old', now() - interval '1 year')")
	require.NoError(t, err)
	t.Setenv("DATABASE_URL", bed.URL)
	t.Setenv("WEBHOOK_SECRET", bed.Secret.Reveal())
	t.Setenv("ADDR", "127.0.0.1:0")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx) }()
	require.Eventually(t, func() bool {
		var left int
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM surehook_dedup_markers").Scan(&left))
		return left == 0
	}, time.Minute, 10*time.Millisecond)
	cancel()
	require.NoError(t, <-ended)
}
