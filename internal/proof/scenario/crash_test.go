package scenario_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/internal/race"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/sqlite"
)

// A process that publishes and delivers is killed twenty times, in the middle of its
// work. The endpoint fails at random, and breaks off after it has applied. In the end
// no committed event is lost, none that was rolled back was sent, and each event had
// one effect.
func TestKill(t *testing.T) {
	const kills = 20
	slowed := time.Millisecond
	if race.Enabled {
		slowed *= 4
	}
	dir := t.TempDir()
	rcv := newCrashReceiver(t, filepath.Join(dir, "receiver.db"))
	producer, db := openProducer(t.Context(), t, filepath.Join(dir, "sender.db"))
	_, secret, err := producer.registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	rcv.verifyWith(secret)
	_, err = producer.registry.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: rcv.server.URL})
	require.NoError(t, err)

	start := func(mode string) (*exec.Cmd, error) {
		return startChild(t, "TestKillChild", func(string) {}, childMode+"="+mode, childMode+"_DIR="+dir)
	}
	for range kills {
		child, ready := start("publish")
		require.NoError(t, ready)
		time.Sleep(time.Duration(20+rand.IntN(230)) * slowed) // when it dies is the test's random input
		require.NoError(t, child.Process.Kill())
		_ = child.Wait()
	}
	child, ready := start("finish")
	require.NoError(t, ready)
	require.NoError(t, child.Wait(), "the last process delivers what is left")

	var ok string
	require.NoError(t, db.QueryRow("PRAGMA integrity_check").Scan(&ok))
	require.Equal(t, "ok", ok)
	committed := column(t, db, "SELECT id FROM things")
	require.Greater(t, len(committed), kills, "the processes had time to work")
	effects := column(t, rcv.db, "SELECT thing FROM effects")
	require.ElementsMatch(t, committed, effects, "each that committed had one effect, and none that was rolled back")
	require.Empty(t, column(t, db, "SELECT id FROM things WHERE id LIKE 'undone%'"))

	posted := rcv.posted()
	interrupted := 0
	deliveries := producer.deliveries(t, "")
	for _, d := range deliveries {
		require.Equal(t, sender.StatusDelivered, d.Status)
		interrupted += requireKept(t, d, posted[d.Event.ID])
	}
	require.Len(t, deliveries, len(committed))
	require.Len(t, posted, len(deliveries), "nothing else was posted")
	require.Positive(t, interrupted, "processes died with attempts in flight")
	t.Logf("%d events, %d attempts interrupted", len(deliveries), interrupted)
}

func crashDSN(path string) string {
	return "file:" + path + "?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(20000)&_txlock=immediate"
}

func openProducer(ctx context.Context, t require.TestingT, path string) (*crashProducer[*sql.Tx], *sql.DB) {
	db, err := sql.Open("sqlite", crashDSN(path))
	require.NoError(t, err)
	_, err = db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS things (id TEXT PRIMARY KEY)")
	require.NoError(t, err)
	store, err := sqlite.New(db, nil)
	require.NoError(t, err)
	require.NoError(t, store.Migrate(ctx))
	schedule, err := backoff.Fixed(50 * time.Millisecond)
	require.NoError(t, err)
	p := newCrashProducer(t, store, sender.DispatcherConfig{
		Timeout: time.Second, Lease: 3 * time.Second, Policy: sender.Policy{Backoff: backoff.Policy{Schedule: schedule}},
	}, func(ctx context.Context, tx *sql.Tx, thing string) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO things VALUES (?)", thing)
		return err
	})
	return p, db
}

const childMode = "SUREHOOK_TEST_CRASH_CHILD"

// startChild starts a test of this program in a process of its own, and returns when it
// is ready. said gets its output after that.
func startChild(t *testing.T, test string, said func(line string), env ...string) (*exec.Cmd, error) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+test+"$", "-test.v")
	child.Env = append(os.Environ(), env...)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	child.Stderr = os.Stderr
	require.NoError(t, child.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "ready") {
			go func() {
				for lines.Scan() {
					said(lines.Text())
				}
			}()
			return child, nil
		}
	}
	return child, fmt.Errorf("the process ended before it was ready: %w", child.Wait())
}

// TestKillChild is the process that TestKill kills. It does nothing if it is run alone.
func TestKillChild(t *testing.T) {
	mode := os.Getenv(childMode)
	if mode == "" {
		return
	}
	p, _ := openProducer(t.Context(), t, filepath.Join(os.Getenv(childMode+"_DIR"), "sender.db"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	fmt.Println("ready")
	if mode == "finish" {
		p.finish(ctx, t)
		return
	}
	go func() { _ = p.dispatcher.Run(ctx) }()
	var publishers sync.WaitGroup
	for range 2 {
		publishers.Go(func() {
			for ctx.Err() == nil {
				if err := p.publishOne(ctx, "thing.made"); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	publishers.Wait()
}
