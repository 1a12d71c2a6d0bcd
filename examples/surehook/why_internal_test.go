package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A long answer is cut at a character, wherever that ends.
func TestOutcomeCutsAnAnswer(t *testing.T) {
	for _, before := range []string{"", "a"} {
		answer := before + strings.Repeat("ö", snippet)
		text := (&attempt{ErrorClass: "status", ResponseSnippet: &answer}).outcome()
		require.True(t, strings.HasPrefix(text, `status "`+before+"ö"))
		require.True(t, strings.HasSuffix(text, `ö"`), text)
	}
}
