package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/catalogue"
)

func TestShow(t *testing.T) {
	var newest, older, state bytes.Buffer
	require.NoError(t, show(&newest, false, ""))
	require.NoError(t, show(&older, false, "2025-03-01"))
	require.NoError(t, show(&state, true, ""))
	var doc struct{ Webhooks map[string]any }
	require.NoError(t, json.Unmarshal(newest.Bytes(), &doc))
	require.Len(t, doc.Webhooks, 50)
	require.NotEqual(t, newest.String(), older.String())
	types, err := catalogue.Read(state.Bytes())
	require.NoError(t, err)
	require.Empty(t, catalogue.Compare(types, types))
}
