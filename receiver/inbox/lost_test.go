package inbox_test

import (
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/inbox"
	"github.com/surehook/surehook/receiver/receivertest"
)

// While the SQLite file is not where it was, no event is answered as recorded, and none is
// applied: it would be gone with the process.
func TestFileIsRemoved(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" { // it does not let go of a file that is open
		return
	}
	path := filepath.Join(t.TempDir(), "app.db")
	base := openSQLite(t, path)
	t.Cleanup(func() { require.NoError(t, base.db.Close()) })
	base.db.SetMaxOpenConns(1) // a new connection would make a file
	base.inTx = receiver.SQL(base.db, nil)
	b := newBed(t, base, nil, inbox.Config{})
	made := 0
	post := func() int {
		made++
		return b.post(receivertest.NewEvent("thing", strconv.Itoa(made), 1)).Status
	}
	require.Equal(t, http.StatusOK, post())
	require.NoError(t, os.Rename(path, path+".moved"))
	require.Eventually(t, func() bool { return post() == http.StatusServiceUnavailable }, time.Minute, time.Millisecond)
	before := b.status()
	require.NoError(t, os.Rename(path+".moved", path))
	require.Eventually(t, func() bool { return post() == http.StatusOK }, time.Minute, time.Millisecond)
	require.Equal(t, before.Events+1, b.status().Events, "what was refused is not there")
	b.run(func() bool { return b.ends.of(receiver.Applied) == before.Events+1 })
}
