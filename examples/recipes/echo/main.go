// Command echo receives signed events under the framework Echo.
package main

import (
	"net/http"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/surehook/surehook/examples/recipes/account"
)

func main() { account.Serve(routes) }

func routes(app *account.App) http.Handler {
	e := echo.New()
	e.Use(middleware.Recover()) // it does not read the body
	e.POST("/webhooks", echo.WrapHandler(app.Handler()))
	return e
}
