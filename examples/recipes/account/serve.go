package account

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Serve is the main function of the recipes that serve net/http. It opens the application
// from the environment and serves its routes on the address in ADDR (127.0.0.1:8080 by
// default) until the process is asked to end. Requests that are being answered then are
// answered to their end.
func Serve(routes func(*App) http.Handler) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, routes); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, routes func(*App) http.Handler) error {
	app, err := FromEnvironment(ctx)
	if err != nil {
		return err
	}
	defer app.Close()
	web := &http.Server{Addr: Address(), Handler: routes(app), ReadHeaderTimeout: 5 * time.Second}
	pruned := make(chan error, 1)
	go func() { pruned <- app.Run(ctx) }()
	ended := make(chan error, 1)
	go func() {
		<-ctx.Done()
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		ended <- web.Shutdown(patience)
	}()
	if err := web.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return errors.Join(<-ended, <-pruned)
}

// Address is where to listen: ADDR, or 127.0.0.1:8080.
func Address() string {
	if addr := os.Getenv("ADDR"); addr != "" {
		return addr
	}
	return "127.0.0.1:8080"
}
