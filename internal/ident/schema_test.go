package ident_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/ident"
)

func TestSchema(t *testing.T) {
	for _, s := range []string{"", "public", `My "own" schema`, strings.Repeat("x", 63)} {
		require.NoError(t, ident.Schema(s), "%q", s)
	}
	require.EqualError(t, ident.Schema(strings.Repeat("x", 64)), "schema has 64 bytes: at most 63 are allowed")
	require.EqualError(t, ident.Schema("a\x00b"), "schema has a NUL: no name can have one")
	require.Equal(t, `"My ""own"" schema"`, ident.QuoteSchema(`My "own" schema`))
}
