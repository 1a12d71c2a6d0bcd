package receiver_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/race"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
)

// 64 requests for one event come at once, 150 times, at receivers that know nothing of each
// other. One of the receivers is in a process that is killed now and then. Applying
// succeeds, fails, panics or outlives its client. There is at most one effect, and a marker
// if and only if there is an effect. Each loser is answered with 200 or 503 unless its own
// work failed. With the race detector there are fewer rounds of fewer requests.
//
//	SUREHOOK_ROUNDS=5000 go test -timeout 1h -run TestRounds -v ./receiver
func TestRoundsOnSQLite(t *testing.T) {
	for _, way := range []string{"immediate", "deferred", "group"} {
		t.Run(way, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "app.db")
			b, inTx := sqliteRounds(t, way, path)
			testRounds(t, b, inTx, "sqlite", way, path)
		})
	}
}

func TestRoundsOnPostgres(t *testing.T) {
	for _, way := range []string{"read committed", "repeatable read", "serializable", "group"} {
		t.Run(way, func(t *testing.T) {
			level := way
			if way == "group" {
				level = "read committed"
			}
			url := postgresURL(t, level)
			b, inTx := postgresRounds(t, way, url)
			testRounds(t, b, inTx, "postgres", way, url)
		})
	}
}

// sqliteRounds also returns a function that makes the InTx of a receiver.
func sqliteRounds(t *testing.T, way, path string) (bed[*sql.Tx], func() receiver.InTx[*sql.Tx]) {
	b, _ := inFile(t, path)
	if way == "group" {
		return b, func() receiver.InTx[*sql.Tx] { return grouped(t, b.inTx, receiver.SQLExec) }
	}
	if way == "deferred" {
		db := openSQLite(t, path, "&_pragma=busy_timeout(5000)&_txlock=deferred")
		b.inTx = receiver.SQL(db, nil)
	}
	return b, func() receiver.InTx[*sql.Tx] { return b.inTx }
}

func postgresRounds(t *testing.T, way, url string) (bed[pgx.Tx], func() receiver.InTx[pgx.Tx]) {
	b, _ := openPostgres(t, url)
	if way == "group" {
		return b, func() receiver.InTx[pgx.Tx] { return grouped(t, b.inTx, pgxExec) }
	}
	return b, func() receiver.InTx[pgx.Tx] { return b.inTx }
}

func grouped[Tx any](t *testing.T, inTx receiver.InTx[Tx], exec receiver.Exec[Tx]) receiver.InTx[Tx] {
	t.Helper()
	group, err := receiver.NewGroup(inTx, exec, nil)
	require.NoError(t, err)
	return group.InTx
}

// fickle applies, fails, panics or has its transaction run again.
func fickle[Tx any](t *testing.T, b bed[Tx], inTx receiver.InTx[Tx]) http.Handler {
	return newReceiver(t, inTx, b.store, nil).Handler(receiver.State(func(ctx context.Context, tx Tx, ev receiver.Event) error {
		if err := b.effect(ctx, tx, ev); err != nil {
			return err
		}
		switch rand.IntN(8) {
		case 0:
			return errors.New("rolled back")
		case 1:
			panic("rolled back")
		case 2:
			return pgError("40001")
		}
		return nil
	}))
}

const roundsChild = "RECEIVER_TEST_ROUNDS_CHILD"

// TestRoundsChild is the process that is killed. By itself it does nothing.
func TestRoundsChild(t *testing.T) {
	spec := strings.SplitN(os.Getenv(roundsChild), "\n", 3)
	if len(spec) < 3 {
		return
	}
	var handler http.Handler
	if spec[0] == "sqlite" {
		b, inTx := sqliteRounds(t, spec[1], spec[2])
		handler = fickle(t, b, inTx())
	} else {
		b, inTx := postgresRounds(t, spec[1], spec[2])
		handler = fickle(t, b, inTx())
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // it ends with the parent
		os.Exit(0)
	}()
	fmt.Println("http://" + listener.Addr().String())
	_ = http.Serve(listener, handler)
}

// rounds are deliveries to several receivers. The last receiver is a process.
type rounds struct {
	handlers []http.Handler
	url      string
	client   *http.Client
	kill     func()

	mu  sync.Mutex
	got map[string]int // answers; "": no answer came
}

func testRounds[Tx any](t *testing.T, b bed[Tx], inTx func() receiver.InTx[Tx], spec ...string) {
	t.Helper()
	count, atOnce, between := 150, 64, 30
	if race.Enabled {
		count, atOnce, between = 20, 16, 5
	}
	if text := os.Getenv("SUREHOOK_ROUNDS"); text != "" {
		_, err := fmt.Sscan(text, &count)
		require.NoError(t, err, "SUREHOOK_ROUNDS")
	}
	r := &rounds{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: atOnce}}, got: map[string]int{}}
	defer r.client.CloseIdleConnections()
	for range 3 {
		r.handlers = append(r.handlers, fickle(t, b, inTx()))
	}
	start := func() {
		r.kill, r.url = startProcess(t, roundsChild+"="+strings.Join(spec, "\n"), "-test.run=^TestRoundsChild$")
	}
	start()
	defer func() { r.kill() }()
	snd := newSender(t)
	// A kill may hit nothing, so there are more of them until one does.
	for round := 0; round < count || r.got[""] == 0 && round < 10*count; round++ {
		ev := receivertest.NewEvent("subscriber", fmt.Sprint("sub_", round), 1)
		kills := round%between == between-1
		applied := r.deliver(t, snd, ev, atOnce, kills)
		if kills {
			start()
			// The work that the process had begun is over, or the test waits for it as a
			// sender does.
			for what := ""; !strings.HasPrefix(what, "200"); {
				what = r.inProcess(t, snd, ev, 0)
			}
		}
		s := b.state(t, ev)
		require.LessOrEqual(t, s.Effects, 1)
		if kills { // its answer may be lost
			require.Equal(t, 1, s.Effects)
			require.LessOrEqual(t, applied, 1)
		} else {
			require.Equal(t, s.Effects, applied, "as many effects as were answered so")
		}
		require.Equal(t, s.Effects == 1, s.Marker)
		require.Equal(t, int64(s.Effects), s.Version)
		if t.Failed() {
			return
		}
	}
	t.Log(r.got)
	require.NotZero(t, r.got[`200 {"result":"applied"}`])
	require.NotZero(t, r.got[`200 {"result":"duplicate"}`])
	require.NotZero(t, r.got[""], "no kill hit anything")
}

// deliver sends an event from all sides at once, and returns how many answers said that it
// was applied.
func (r *rounds) deliver(t *testing.T, snd *receivertest.Sender, ev receivertest.Event, atOnce int, kills bool) (applied int) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range atOnce {
		wg.Go(func() {
			<-start
			what := ""
			if to := i % (len(r.handlers) + 1); to < len(r.handlers) {
				what = r.inProcess(t, snd, ev, to)
			} else if what = r.overTheWire(t, snd, ev); what == "" && !kills {
				t.Error("the process did not answer")
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.got[what]++
			if what == `200 {"result":"applied"}` {
				applied++
			}
			switch what, _, _ = strings.Cut(what, " "); what {
			case "", "200", "500", "503":
			default:
				t.Error("answered ", what)
			}
		})
	}
	close(start)
	if kills {
		time.Sleep(rand.N(5 * time.Millisecond)) // the time of its death is the test's random input
		r.kill()
	}
	wg.Wait()
	return applied
}

func (r *rounds) inProcess(t *testing.T, snd *receivertest.Sender, ev receivertest.Event, to int) string {
	m := snd.Request(ev).Message()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", "/", bytes.NewReader(m.Body))
	if err != nil {
		t.Error(err)
		return ""
	}
	req.Header = m.Header
	if rand.IntN(4) == 0 { // the client leaves
		time.AfterFunc(rand.N(2*time.Millisecond), cancel)
	}
	w := httptest.NewRecorder()
	r.handlers[to].ServeHTTP(w, req)
	return fmt.Sprint(w.Code, " ", w.Body)
}

func (r *rounds) overTheWire(t *testing.T, snd *receivertest.Sender, ev receivertest.Event) string {
	m := snd.Request(ev).Message()
	req, err := http.NewRequestWithContext(t.Context(), "POST", r.url, bytes.NewReader(m.Body))
	if err != nil {
		t.Error(err)
		return ""
	}
	req.Header = m.Header
	res, err := r.client.Do(req)
	if err != nil {
		return ""
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return ""
	}
	return fmt.Sprint(res.StatusCode, " ", string(body))
}
