package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The story checks its own end.
func TestStory(t *testing.T) {
	require.NoError(t, story(t.Context(), t.TempDir()))
}
