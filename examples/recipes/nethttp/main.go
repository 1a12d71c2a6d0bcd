// Command nethttp receives signed events with net/http alone.
package main

import (
	"net/http"

	"github.com/surehook/surehook/examples/recipes/account"
)

func main() { account.Serve(routes) }

func routes(app *account.App) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /webhooks", app.Handler())
	return mux
}
