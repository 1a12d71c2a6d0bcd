package inbox_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/inbox"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/signing"
)

// Where the processes that are killed find their database: one of the two.
const (
	childFile = "SUREHOOK_TEST_INBOX_FILE"
	childURL  = "SUREHOOK_TEST_INBOX_URL"
)

func TestKillOnSQLite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	open := openSQLite(t, path)
	t.Cleanup(func() { require.NoError(t, open.db.Close()) })
	killed(t, open, childFile+"="+path)
}

func TestKillOnPostgres(t *testing.T) {
	url := pgURL(t)
	killed(t, openPgx(t, url), childURL+"="+url)
}

// Processes that take events and apply them share an inbox and are killed, one after
// the other, in the middle of it. What any of them has acknowledged is applied in the
// end, and nothing has two effects.
func killed[Tx any](t *testing.T, open base[Tx], env string) {
	const kills, processes = 12, 3
	said := &acknowledgements{ids: map[string]bool{}, more: make(chan struct{}, 1)}
	var children []*child
	for range processes {
		children = append(children, startChild(t, env, said))
	}
	within := 0
	for range kills {
		said.wait(t, 5+rand.IntN(20)) // when it dies is the test's random input
		i := rand.IntN(processes)
		children[i].kill()
		children[i] = startChild(t, env, said)
		acknowledged := said.all()
		// In one statement, since the others go on meanwhile.
		kept := map[string]bool{}
		for _, id := range column(t, open.db, "SELECT id FROM effects UNION ALL SELECT id FROM surehook_inbox_events") {
			kept[id] = true
		}
		for _, id := range acknowledged {
			require.True(t, kept[id], "an acknowledged event is neither applied nor in the inbox")
		}
		if len(column(t, open.db, "SELECT id FROM surehook_inbox_events WHERE attempt > 0")) > 0 {
			within++
		}
	}
	for _, c := range children {
		c.kill()
	}
	require.Positive(t, within, "none ever died with an event in its hands")
	b := newBed(t, open, nil, inbox.Config{})
	left := b.status().Events
	// Not by how many have ended: a copy that was recorded after the effect is left too,
	// and ends as a duplicate, which the bed does not count.
	b.run(func() bool { return b.status().Events == 0 })
	effects := open.effects(t)
	slices.Sort(effects)
	require.Equal(t, slices.Compact(slices.Clone(effects)), effects, "an event had two effects")
	acknowledged := said.all()
	for _, id := range acknowledged {
		_, applied := slices.BinarySearch(effects, id)
		require.True(t, applied, "an acknowledged event was lost")
	}
	t.Logf("killed %d times, %d times with events in hand; %d events acknowledged, %d applied, %d of them after the last kill",
		kills, within, len(acknowledged), len(effects), left)
}

// acknowledgements are what all processes have answered with 200.
type acknowledgements struct {
	mu   sync.Mutex
	ids  map[string]bool
	more chan struct{}
}

func (a *acknowledgements) add(id string) {
	a.mu.Lock()
	a.ids[id] = true
	a.mu.Unlock()
	select {
	case a.more <- struct{}{}:
	default:
	}
}

func (a *acknowledgements) all() (ids []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id := range a.ids {
		ids = append(ids, id)
	}
	return ids
}

func (a *acknowledgements) wait(t *testing.T, n int) {
	for until := len(a.all()) + n; len(a.all()) < until; {
		select {
		case <-a.more:
		case <-time.After(time.Minute):
			t.Fatal("nothing is acknowledged any more")
		}
	}
}

type child struct {
	cmd  *exec.Cmd
	read chan struct{}
}

func startChild(t *testing.T, env string, said *acknowledgements) *child {
	c := &child{cmd: exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKillChild$"), read: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), env)
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.cmd.Start())
	go func() {
		defer close(c.read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if len(lines.Text()) == len("evt_")+26 { // the last one may be a part of one
				said.add(lines.Text())
			}
		}
	}()
	return c
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	<-c.read
	_ = c.cmd.Wait()
}

const childLease = 2 * time.Second

// TestKillChild is a process that is killed; by itself it does nothing.
func TestKillChild(t *testing.T) {
	if path := os.Getenv(childFile); path != "" {
		takeUntilKilled(t, openSQLite(t, path))
	}
	if url := os.Getenv(childURL); url != "" {
		takeUntilKilled(t, openPgx(t, url))
	}
}

func takeUntilKilled[Tx any](t *testing.T, open base[Tx]) {
	secret := signing.GenerateSecret()
	rcv := newReceiver(t, open, secret, &ends{counts: map[receiver.Result]int{}, change: make(chan struct{}, 1)}, receiver.Config{})
	in, err := inbox.New(rcv, open.inTx, hasty[Tx]{open.store, childLease}, open.effect, &inbox.Config{Workers: 2, Logger: quiet})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	go func() { _ = in.Run(ctx) }()
	sender, handler := receivertest.NewSender(t, secret, nil), in.Handler()
	for ctx.Err() == nil {
		ev := receivertest.NewEvent("thing", receivertest.NewEvent("thing", "a", 1).ID, 1)
		for range 2 {
			if sender.Request(ev).Serve(handler).Status == 200 {
				fmt.Println(ev.ID)
			}
		}
	}
}
