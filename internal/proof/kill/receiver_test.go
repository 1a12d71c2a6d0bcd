package kill_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	dedup "github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/internal/killtest"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/signing"
)

type received struct{ Path, Secret string }

// receiving applies the events that are posted to it, and prints its address.
var receiving = killtest.NewChild("receiver", func(_ context.Context, arg received) error {
	secret, err := signing.ParseSecret(arg.Secret)
	if err != nil {
		return err
	}
	db := openSQLite(child{}, arg.Path)
	rcv := newReceiver(child{}, receiver.SQL(db, nil), dedup.New(), secret)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + listener.Addr().String())
	return http.Serve(listener, rcv.Handler(receiver.State(func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO effects (id) VALUES (?)", ev.ID); err != nil {
			return err
		}
		// The pause waits for nothing. Sometimes a kill must come between the two, which
		// would leave only one of them.
		<-time.After(rand.N(2 * time.Millisecond))
		_, err := tx.ExecContext(ctx, "INSERT INTO effects (id) VALUES (?)", ev.ID+"/second")
		return err
	})))
})

// While a sender resends every event that was not answered with 2xx, each event has its
// whole effect exactly once, and a marker exactly if it has the effect.
func TestReceiver(t *testing.T) {
	t.Parallel()
	const kills, senders = 12, 8
	path, secret := filepath.Join(t.TempDir(), "app.db"), signing.GenerateSecret()
	db := openSQLite(t, path)
	require.NoError(t, dedup.Migrate(t.Context(), db))
	_, err := db.Exec("CREATE TABLE effects (id TEXT NOT NULL)")
	require.NoError(t, err)
	var (
		url      atomic.Value
		known    = make(chan struct{}) // the first url
		know     = sync.OnceFunc(func() { close(known) })
		stop     atomic.Bool
		wg       sync.WaitGroup
		lost     atomic.Int64 // answers that never came
		sent     = make([][]receivertest.Event, senders)
		answered = make(chan struct{}, 1)
	)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: senders}}
	defer client.CloseIdleConnections()
	snd := receivertest.NewSender(t, secret, &receivertest.SenderConfig{Client: client})
	ctx, cancel := context.WithCancel(t.Context())
	defer wg.Wait()
	defer cancel()
	send := func(ev receivertest.Event) {
		for ctx.Err() == nil {
			a, err := snd.Request(ev).Post(ctx, url.Load().(string))
			if err == nil && a.Status == 200 {
				return
			}
			if err == nil && a.Status != 503 {
				t.Error("answered ", a.Status)
				cancel()
			}
			lost.Add(1)
		}
	}
	for i := range senders {
		wg.Go(func() {
			select {
			case <-known:
			case <-ctx.Done():
			}
			for v := int64(1); !stop.Load() && ctx.Err() == nil; v++ {
				sent[i] = append(sent[i], receivertest.NewEvent("subscriber", fmt.Sprint("sub_", i), v))
				send(sent[i][v-1])
				select {
				case answered <- struct{}{}:
				default:
				}
			}
		})
	}
	left := kills
	killtest.Run(t, killtest.Case{
		Child:  func(int) *exec.Cmd { return receiving.Command(received{path, secret.Reveal()}) },
		Rounds: kills, Replace: true,
		Heard: func(line string) {
			url.Store(line)
			know()
		},
		Point: func(r *killtest.Running) {
			for range 5 + rand.IntN(30) {
				r.Await(answered)
			}
		},
		Check: func() {
			if left--; left == 0 { // the last process answers the requests under way
				stop.Store(true)
				wg.Wait()
			}
		},
	})
	require.NotZero(t, lost.Load(), "no kill hit anything")

	var whole, ids []string
	for _, events := range sent {
		for _, ev := range events {
			ids = append(ids, ev.ID)
			whole = append(whole, ev.ID, ev.ID+"/second")
		}
	}
	slices.Sort(whole)
	slices.Sort(ids)
	require.Equal(t, whole, column(t, db, "SELECT id FROM effects ORDER BY id"))
	require.Equal(t, ids, column(t, db, "SELECT id FROM surehook_dedup_markers ORDER BY id"))
	t.Logf("%d events, %d kills, %d requests without an answer of 200", len(ids), kills, lost.Load())
}
