// Package cloudfunction receives signed events as a Google Cloud Function (a Cloud Run
// function), whose entry point is ReceiveWebhook.
package cloudfunction

import (
	"context"
	"log/slog"
	"net/http"
	"sync"

	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/surehook/surehook/examples/recipes/account"
)

// The platform builds its own main function around this package. It calls the entry
// points that were registered before main begins.
func init() { functions.HTTP("ReceiveWebhook", (&function{}).ServeHTTP) }

// function opens the application at its first request, and again at the next one if
// that failed: an instance that starts while the database is away is not lost.
type function struct {
	opening sync.Mutex
	handler http.Handler
}

func (f *function) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	handler, err := f.open(context.WithoutCancel(r.Context()))
	if err != nil {
		slog.ErrorContext(r.Context(), "the application could not be opened", "error", err)
		w.Header().Set("Retry-After", "5")
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	handler.ServeHTTP(w, r)
}

func (f *function) open(ctx context.Context) (http.Handler, error) {
	f.opening.Lock()
	defer f.opening.Unlock()
	if f.handler == nil {
		app, err := account.FromEnvironment(ctx)
		if err != nil {
			return nil, err
		}
		f.handler = app.Handler()
	}
	return f.handler, nil
}
