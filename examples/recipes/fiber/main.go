// Command fiber receives signed events under the framework Fiber, whose requests are
// not those of net/http: the event is taken from their bytes.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/recover"

	"github.com/surehook/surehook/examples/recipes/account"
	"github.com/surehook/surehook/signing"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(ctx context.Context) error {
	app, err := account.FromEnvironment(ctx)
	if err != nil {
		return err
	}
	defer app.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pruned := make(chan error, 1)
	go func() { pruned <- app.Run(ctx) }()
	err = routes(app).Listen(account.Address(), fiber.ListenConfig{
		GracefulContext: ctx, ShutdownTimeout: 10 * time.Second, DisableStartupMessage: true,
	})
	cancel() // it may have failed to listen
	return errors.Join(err, <-pruned)
}

func routes(app *account.App) *fiber.App {
	f := fiber.New(fiber.Config{
		// Fiber reads the whole body before it calls anybody, so the bounds of size and
		// time, which the receiver sets elsewhere, are Fiber's to set.
		BodyLimit:   1 << 20,
		ReadTimeout: 8 * time.Second,
	})
	f.Use(recover.New())
	f.Post("/webhooks", func(c fiber.Ctx) error {
		answer := app.Receive(c.Context(), message(c))
		for name, values := range answer.Header {
			for _, value := range values {
				c.Append(name, value)
			}
		}
		return c.Status(answer.Status).Send(answer.Body)
	})
	return f
}

// message copies the headers, because Fiber uses their memory again for the next
// request. The body is the raw one: what c.Body returns may have been decompressed, and
// the signature covers what was posted.
func message(c fiber.Ctx) signing.Message {
	h := http.Header{}
	for name, value := range c.Request().Header.All() {
		h.Add(string(name), string(value))
	}
	return signing.Message{Method: string(c.Request().Header.Method()), URL: string(c.Request().RequestURI()), Header: h, Body: c.BodyRaw()}
}
