package main

import (
	"net"
	"testing"

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
