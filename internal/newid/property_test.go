package newid_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/internal/newid"
)

// Ids have the form of an event's id, none comes twice, and an id of a later
// millisecond is the greater text.
func TestPropertyIDsSortByTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.UnixMilli(rapid.Int64Range(0, 1<<47).Draw(t, "at"))
		later := at.Add(time.Duration(rapid.Int64Range(1, 1<<40).Draw(t, "later")) * time.Millisecond)
		a, b := newid.New("evt_", at), newid.New("evt_", later)
		require.NoError(t, ident.EventID(a))
		require.Less(t, a, b)
		require.NotEqual(t, a, newid.New("evt_", at))
	})
}
