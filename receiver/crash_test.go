package receiver_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/signing"
)

// The test binary is also the process that is killed.
const childDatabase = "RECEIVER_TEST_CHILD_DATABASE"

func TestMain(m *testing.M) {
	if path := os.Getenv(childDatabase); path != "" {
		if err := receiveUntilKilled(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func crashDSN(path string) string {
	return "file:" + path + "?_txlock=immediate&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(5000)"
}

// receiveUntilKilled says where it listens, and ends when its parent does.
func receiveUntilKilled(path string) error {
	db, err := sql.Open("sqlite", crashDSN(path))
	if err != nil {
		return err
	}
	keys, err := signing.NewKeyring(signing.Key{Secret: testSecret})
	if err != nil {
		return err
	}
	verifier, err := signing.NewVerifier(keys, nil)
	if err != nil {
		return err
	}
	rcv, err := receiver.New(verifier, receiver.SQL(db, nil), sqlite.New(), &receiver.Config{
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + listener.Addr().String())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return http.Serve(listener, rcv.Handler(func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
		// Twice, with some time between: a kill in the middle would leave one.
		if err := sqliteEffect(ctx, tx, ev); err != nil {
			return err
		}
		time.Sleep(rand.N(2 * time.Millisecond))
		_, err := tx.ExecContext(ctx, "INSERT INTO effects (id) VALUES (?)", ev.ID+"/second")
		return err
	}))
}

func startChild(t *testing.T, path string) (kill func(), url string) {
	t.Helper()
	return startProcess(t, childDatabase+"="+path)
}

// startProcess starts the test binary and waits until it says where it listens.
func startProcess(t *testing.T, env string, args ...string) (kill func(), url string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), env)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = stdin.Close()
	}, strings.TrimSpace(line)
}

// A receiving process is killed at any moment, while a sender resends whatever
// was not answered with 2xx: each event has its whole effect exactly once, and a
// marker exactly if it has the effect.
func TestKillNine(t *testing.T) {
	const kills, senders = 12, 8
	path := filepath.Join(t.TempDir(), "app.db")
	db := openSQLite(t, path, "&_pragma=busy_timeout(5000)")
	var (
		url     atomic.Value
		answers atomic.Int64
		stop    atomic.Bool
		wg      sync.WaitGroup
		lost    atomic.Int64 // answers that never came
		sent    = make([][]receivertest.Event, senders)
	)
	kill, at := startChild(t, path)
	url.Store(at)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: senders}}
	defer client.CloseIdleConnections()
	snd := receivertest.NewSender(t, testSecret, &receivertest.SenderConfig{Client: client})
	answered := make(chan struct{}, 1)
	for i := range senders {
		wg.Go(func() {
			for v := int64(1); !stop.Load(); v++ {
				ev := receivertest.NewEvent("subscriber", fmt.Sprint("sub_", i), v)
				sent[i] = append(sent[i], ev)
				for {
					a, err := snd.Request(ev).Post(t.Context(), url.Load().(string))
					if err == nil && a.Status == 200 {
						break
					}
					if err == nil && a.Status != 503 {
						t.Error("answered ", a.Status)
						return
					}
					lost.Add(1)
				}
				answers.Add(1)
				select {
				case answered <- struct{}{}:
				default:
				}
			}
		})
	}
	for range kills {
		for until := answers.Load() + 5 + rand.Int64N(30); answers.Load() < until; {
			<-answered
		}
		kill()
		kill, at = startChild(t, path)
		url.Store(at)
	}
	stop.Store(true)
	wg.Wait()
	kill()
	require.NotZero(t, lost.Load(), "no kill hit anything")

	total := 0
	for _, events := range sent {
		for _, ev := range events {
			total++
			require.Equal(t, 1, count(t, db, "SELECT count(*) FROM effects WHERE id = ?", ev.ID))
			require.Equal(t, 1, count(t, db, "SELECT count(*) FROM effects WHERE id = ?", ev.ID+"/second"))
			require.True(t, marked(t, receiver.SQL(db, nil), sqlite.New(), "default", ev.ID))
		}
	}
	require.Equal(t, 2*total, count(t, db, "SELECT count(*) FROM effects"))
	require.Equal(t, total, count(t, db, "SELECT count(*) FROM surehook_dedup_markers"))
	t.Logf("%d events, %d kills, %d requests without an answer of 200", total, kills, lost.Load())
}
