// Command gin receives signed events under the framework Gin.
package main

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/surehook/surehook/examples/recipes/account"
)

func main() { account.Serve(routes) }

func routes(app *account.App) http.Handler {
	r := gin.New()
	r.Use(gin.Recovery()) // it does not read the body
	r.POST("/webhooks", gin.WrapH(app.Handler()))
	return r
}
