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
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/inbox"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/signing"
)

const childDB = "SUREHOOK_TEST_INBOX_DB"

// A process that takes events and applies them is killed twenty times, in the middle of
// it. What it has acknowledged is applied in the end, and nothing has two effects.
func TestKill(t *testing.T) {
	const kills = 20
	path := filepath.Join(t.TempDir(), "app.db")
	open := openSQLite(t, path)
	t.Cleanup(func() { require.NoError(t, open.db.Close()) })
	acknowledged := map[string]bool{}
	within := 0
	for range kills {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKillChild$")
		child.Env = append(os.Environ(), childDB+"="+path)
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		lines := bufio.NewScanner(out)
		for range 5 + rand.IntN(20) { // when it dies is the test's random input
			require.True(t, lines.Scan(), "the child has ended by itself")
			acknowledged[lines.Text()] = true
		}
		require.NoError(t, child.Process.Kill())
		for lines.Scan() { // what it had said before it died
			if len(lines.Text()) == len("evt_")+26 {
				acknowledged[lines.Text()] = true
			}
		}
		_ = child.Wait()
		kept := map[string]bool{}
		for _, id := range append(open.effects(t), column(t, open.db, "SELECT id FROM surehook_inbox_events")...) {
			kept[id] = true
		}
		for id := range acknowledged {
			require.True(t, kept[id], "an acknowledged event is neither applied nor in the inbox")
		}
		if claimed := column(t, open.db, "SELECT id FROM surehook_inbox_events WHERE attempt > 0"); len(claimed) > 0 {
			within++
		}
	}
	require.Positive(t, within, "it never died with an event in its hands")
	b := newBed(t, open, nil, inbox.Config{Lease: childLease})
	left := b.status().Events
	// Not by how many have ended: a copy that was recorded after the effect is left too,
	// and ends as a duplicate, which the bed does not count.
	b.run(func() bool { return b.status().Events == 0 })
	effects := open.effects(t)
	slices.Sort(effects)
	require.Equal(t, slices.Compact(slices.Clone(effects)), effects, "an event had two effects")
	for id := range acknowledged {
		_, applied := slices.BinarySearch(effects, id)
		require.True(t, applied, "an acknowledged event was lost")
	}
	t.Logf("killed %d times, %d times with an event in its hands; %d events acknowledged, %d applied, %d of them after the last kill",
		kills, within, len(acknowledged), len(effects), left)
}

const childLease = 2 * time.Second

// TestKillChild is the process that TestKill kills; by itself it does nothing.
func TestKillChild(t *testing.T) {
	path := os.Getenv(childDB)
	if path == "" {
		return
	}
	open := openSQLite(t, path)
	secret := signing.GenerateSecret()
	rcv := newReceiver(t, open, secret, &ends{counts: map[receiver.Result]int{}, change: make(chan struct{}, 1)})
	in, err := inbox.New(rcv, open.inTx, open.store, open.effect, &inbox.Config{Workers: 2, Lease: childLease, Logger: quiet})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
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
