// Command chi receives signed events under the router chi.
package main

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/surehook/surehook/examples/recipes/account"
)

func main() { account.Serve(routes) }

func routes(app *account.App) http.Handler {
	r := chi.NewRouter()
	r.Use(middleware.RequestID, middleware.Recoverer) // neither reads the body
	r.Method(http.MethodPost, "/webhooks", app.Handler())
	return r
}
