package main

import (
	"database/sql"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/jobs"
)

// However large the results of jobs are, a page of them is not. The pages together have all.
func TestPagesOfJobsAreBounded(t *testing.T) {
	t.Parallel()
	s, ask := newTestServer(t)
	large := json.RawMessage(`"` + strings.Repeat("x", inlineExport) + `"`)
	var ids []string
	for _, result := range append(slices.Repeat([]json.RawMessage{large}, 30), slices.Repeat([]json.RawMessage{json.RawMessage("[]")}, 45)...) {
		id := submitted(t, s)
		require.NoError(t, s.db.inTx(t.Context(), func(tx *sql.Tx) error {
			r, now, err := s.db.jobs.LockTx(t.Context(), tx, jobs.Key{ID: id})
			require.NoError(t, err)
			r.Status, r.FinishedAt, r.Due, r.Result = jobs.Succeeded, now, time.Time{}, result
			return s.db.jobs.UpdateTx(t.Context(), tx, r)
		}))
		ids = append(ids, id)
	}
	slices.Reverse(ids)
	var listed []string
	lengths := []int{}
	for at := "/jobs?limit=40"; at != ""; {
		w := ask(testToken, http.MethodGet, at, "")
		require.Equal(t, http.StatusOK, w.Code)
		require.Less(t, w.Body.Len(), 5<<20)
		var page List[Job]
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &page))
		for _, j := range page.Data {
			listed = append(listed, j.ID)
		}
		lengths, at = append(lengths, len(page.Data)), ""
		if page.NextCursor != nil {
			at = "/jobs?limit=40&cursor=" + *page.NextCursor
		}
	}
	require.Equal(t, ids, listed)
	require.Equal(t, 40, lengths[0], "a page of small results is whole")
}
