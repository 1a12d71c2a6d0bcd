package kill_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	dedup "github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/internal/killtest"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/catchup"
	cursors "github.com/surehook/surehook/receiver/catchup/sqlite"
	"github.com/surehook/surehook/signing"
)

type consumer struct{ Path, Feed string }

// catchingUp applies the events of a feed, and prints each one's id.
var catchingUp = killtest.NewChild("catch-up", func(ctx context.Context, arg consumer) error {
	return catchUp(child{}, openSQLite(child{}, arg.Path), arg.Feed, 7, os.Stdout).Run(ctx)
})

func catchUp(t testing.TB, db *sql.DB, feed string, limit int, applied io.Writer) *catchup.Catchup[*sql.Tx] {
	client, err := catchup.NewClient(feed, &catchup.ClientConfig{AllowUnencrypted: true})
	require.NoError(t, err)
	rcv := newReceiver(t, receiver.SQL(db, nil), dedup.New(), signing.GenerateSecret())
	c, err := catchup.New(client, rcv, receiver.SQL(db, nil), cursors.New(), receiver.State(func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
		fmt.Fprintln(applied, ev.ID)
		_, err := tx.ExecContext(ctx, "INSERT INTO effects VALUES (?)", ev.ID)
		return err
	}), &catchup.Config{Limit: limit, Logger: quiet})
	require.NoError(t, err)
	return c
}

// newFeed serves n events, each about an object of its own: see serveFeed.
func newFeed(t *testing.T, n int) (url string, ids []string) {
	var events []json.RawMessage
	for i := range n {
		id := fmt.Sprintf("evt_%03d", i+1)
		ids = append(ids, id)
		events = append(events, json.RawMessage(fmt.Sprintf(`{"id":%q,"type":"thing.made","object":{"type":"thing","id":%q},"version":1}`, id, id)))
	}
	return serveFeed(t, events), ids
}

// serveFeed serves events. Its cursors say how many were read.
func serveFeed(t *testing.T, events []json.RawMessage) (url string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := passed(r.FormValue("after"))
		limit, err := strconv.Atoi(r.FormValue("limit"))
		if err != nil || from < 0 {
			http.Error(w, "wrong", http.StatusBadRequest)
			return
		}
		to := min(from+limit, len(events))
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"data": events[from:to], "next_cursor": fmt.Sprint("at ", to)})
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// passed returns how many events a cursor has passed.
func passed(cursor string) (n int) {
	if cursor == "" {
		return 0
	}
	if _, err := fmt.Sscanf(cursor, "at %d", &n); err != nil {
		return -1
	}
	return n
}

// Whenever a consumer dies, all events that its cursor has passed are applied. In the end
// each event had one effect.
func TestCatchUp(t *testing.T) {
	t.Parallel()
	const kills, events = 20, 600
	feed, ids := newFeed(t, events)
	path := filepath.Join(t.TempDir(), "consumer.db")
	db := openSQLite(t, path)
	require.NoError(t, dedup.Migrate(t.Context(), db))
	require.NoError(t, cursors.Migrate(t.Context(), db))
	_, err := db.Exec("CREATE TABLE effects (id TEXT NOT NULL)")
	require.NoError(t, err)
	cursor := func() (at string) {
		for _, at = range column(t, db, "SELECT cursor FROM surehook_catchup_cursors WHERE name = 'default'") {
		}
		return at
	}
	effects := func() []string { return column(t, db, "SELECT id FROM effects ORDER BY rowid") }

	within := 0
	killtest.Run(t, killtest.Case{
		Child:  func(int) *exec.Cmd { return catchingUp.Command(consumer{path, feed}) },
		Rounds: kills,
		Point:  killtest.Lines(1, 20),
		Within: 8 * time.Millisecond,
		Check: func() {
			at, done := passed(cursor()), effects()
			require.GreaterOrEqual(t, len(done), at, "the cursor is ahead of the effects")
			require.Equal(t, ids[:len(done)], done, "each once, in their order")
			if len(done) > at {
				within++
			}
		},
	})
	require.Positive(t, within, "it never died within a page")
	done := len(effects())
	require.Less(t, done, events, "it was done before it was killed")
	r, err := catchUp(t, db, feed, 0, io.Discard).Reconcile(t.Context(), cursor())
	require.NoError(t, err)
	require.Equal(t, events-done, r.Applied)
	require.Equal(t, ids, effects())
	intact(t, db)
	t.Logf("killed %d times within a page; %d of %d events were applied until then", within, done, events)
}
