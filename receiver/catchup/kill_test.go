package catchup_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/catchup"
	cursors "github.com/surehook/surehook/receiver/catchup/sqlite"
)

const (
	childDB   = "SUREHOOK_TEST_CATCHUP_DB"
	childFeed = "SUREHOOK_TEST_CATCHUP_FEED"
)

// serve serves a fakeFeed over HTTP.
func (f *fakeFeed) serve(t *testing.T) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit, _ := strconv.Atoi(r.FormValue("limit"))
		p, err := f.Page(context.Background(), r.FormValue("after"), limit, 0)
		if err != nil {
			http.Error(w, "wrong", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"data": p.Events, "next_cursor": p.Next})
	}))
	t.Cleanup(server.Close)
	return server
}

// A consumer is killed twenty times, in the middle of it. Whenever it dies, what its
// cursor has passed is applied; in the end each event had one effect.
func TestKill(t *testing.T) {
	const kills, events = 20, 600
	feed := &fakeFeed{}
	ids := feed.add(events)
	path := filepath.Join(t.TempDir(), "consumer.db")
	db, rcv := openConsumer(t, path)
	defer func() { require.NoError(t, db.Close()) }()
	b := &bed{t: t, db: db}
	asked := make(chan struct{}, 1000)
	feed.onAsked(func(string) {
		select {
		case asked <- struct{}{}:
		default:
		}
	})
	server := feed.serve(t)
	within := 0
	for range kills {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKillChild$")
		child.Env = append(os.Environ(), childDB+"="+path, childFeed+"="+server.URL)
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		require.True(t, bufio.NewScanner(out).Scan(), "the child is ready")
		for range 1 + rand.IntN(4) { // when it dies is the test's random input
			select {
			case <-asked:
			case <-time.After(time.Minute):
				t.Fatal("the child asks for nothing")
			}
		}
		time.Sleep(time.Duration(rand.IntN(8000)) * time.Microsecond)
		require.NoError(t, child.Process.Kill())
		_ = child.Wait()

		passed := 0
		if at := b.cursor(); at != "" {
			_, err := fmt.Sscanf(at, "at %d", &passed)
			require.NoError(t, err)
		}
		effects := b.effects()
		require.GreaterOrEqual(t, len(effects), passed, "the cursor is ahead of the effects")
		require.Equal(t, ids[:len(effects)], effects, "each once, in their order")
		if len(effects) > passed {
			within++
		}
		for len(asked) > 0 {
			<-asked
		}
	}
	require.Positive(t, within, "it never died within a page")
	left := len(b.effects())
	require.Less(t, left, events, "it was done before it was killed")
	client, err := catchup.NewClient(server.URL, &catchup.ClientConfig{AllowUnencrypted: true})
	require.NoError(t, err)
	c, err := catchup.New(client, rcv, receiver.SQL(db, nil), cursors.New(), effect, &catchup.Config{Logger: quiet})
	require.NoError(t, err)
	r, err := c.Reconcile(t.Context(), b.cursor())
	require.NoError(t, err)
	require.Equal(t, events-left, r.Applied)
	require.Equal(t, ids, b.effects())
	t.Logf("killed %d times, %d times within a page; %d of %d events were applied until then", kills, within, left, events)
}

// TestKillChild is the process that TestKill kills; by itself it does nothing.
func TestKillChild(t *testing.T) {
	path := os.Getenv(childDB)
	if path == "" {
		return
	}
	db, rcv := openConsumer(t, path)
	client, err := catchup.NewClient(os.Getenv(childFeed), &catchup.ClientConfig{AllowUnencrypted: true})
	require.NoError(t, err)
	c, err := catchup.New(client, rcv, receiver.SQL(db, nil), cursors.New(), effect, &catchup.Config{Limit: 7, Logger: quiet})
	require.NoError(t, err)
	fmt.Println("ready")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_ = c.Run(ctx)
}
