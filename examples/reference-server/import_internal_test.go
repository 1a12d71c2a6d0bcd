package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// An import can store its state and its result, whatever its entries are.
func TestStateOfAnImport(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("\x01", shownID)
	_, err := (&service{}).importRow(t.Context(), nil, ImportedSubscriber{ID: &id})
	var bad *badRow
	require.ErrorAs(t, err, &bad)
	worst := ImportError{Index: maxBody, ID: id, Message: bad.message}
	text, err := json.Marshal(importState{Next: maxBody, Imported: Imported{Errors: slices.Repeat([]ImportError{worst}, maxImportErrors)}})
	require.NoError(t, err)
	require.Less(t, len(text), maxImportState)
}
