package main

import (
	"net/http/httptest"
	"testing"

	"github.com/surehook/surehook/examples/recipes/recipetest"
)

func TestReceives(t *testing.T) {
	bed := recipetest.New(t)
	server := httptest.NewServer(routes(bed.App))
	defer server.Close()
	recipetest.Check(t, bed, recipetest.PostTo(t, server.URL+"/webhooks"))
}
