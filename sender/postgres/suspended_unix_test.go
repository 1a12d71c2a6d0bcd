//go:build unix

package postgres_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// A process that is suspended while it receives bodies stops no other process. Another
// one takes over its deliveries, and the first one makes none of them twice when it
// goes on.
func TestSuspendedWhileReadingBodies(t *testing.T) {
	t.Parallel()
	const subscribers = 40
	p := newPlace(t)
	s := p.store(t)
	owners(t, s, subscribers+1, 1)
	for i := range subscribers {
		require.NoError(t, publishInTx(t.Context(), s, largeDraft(subscriberID(i), 900<<10)))
	}

	program, err := os.Executable()
	require.NoError(t, err)
	child := exec.CommandContext(t.Context(), program)
	child.Env = append(os.Environ(), suspendedDSN+"="+pgtest.DSN(t), suspendedSchema+"="+p.schema)
	var said strings.Builder
	child.Stderr = &said
	tells, err := child.StdinPipe()
	require.NoError(t, err)
	says, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	ended := false
	defer func() {
		if !ended {
			_ = child.Process.Kill() // suspended or not
			_ = child.Wait()
		}
	}()
	line, err := bufio.NewReader(says).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "reading\n", line)
	require.NoError(t, child.Process.Signal(syscall.SIGSTOP))

	news := draft(subscriberID(subscribers)) // whose leases it does not hold
	delivered := make(chan string, subscribers+1)
	d, err := suspendableDispatcher(s, accepts{}, dispatch.Hooks{Recorded: func(_ context.Context, r *dispatch.Recorded) {
		if r.Result.Class == sender.ClassNone && !r.Lost {
			delivered <- r.Event.ID
		}
	}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- d.Run(ctx) }()
	stop := func() error { cancel(); return <-ran }
	defer func() {
		if !ended {
			_ = stop()
		}
	}()
	require.NoError(t, publishInTx(t.Context(), s, news))
	next := func(patience time.Duration) string {
		select {
		case id := <-delivered:
			return id
		case <-time.After(patience):
			return ""
		}
	}
	require.Equal(t, news.ID, next(20*time.Second), "long before the leases of the suspended one end")
	require.Equal(t, subscribers, p.count(t, `SELECT count(*) FROM {}.surehook_leases WHERE event IN (
		SELECT f.position FROM {}.surehook_feed f JOIN {}.surehook_events e ON e.no = f.event WHERE length(e.body) > 900000)`), "what it had claimed")
	for n := 1; n <= subscribers; n++ {
		require.NotEmpty(t, next(40*time.Second), "%d of %d were delivered before the leases of the suspended one ended", n, subscribers+1)
	}

	require.NoError(t, child.Process.Signal(syscall.SIGCONT))
	_, err = tells.Write([]byte("\n"))
	require.NoError(t, err)
	require.NoError(t, tells.Close())
	err = child.Wait()
	ended = true
	require.NoError(t, err, said.String())
	require.NoError(t, stop())
	p.settled(t)
	require.Equal(t, subscribers+1, p.count(t, `SELECT count(*) FROM {}.surehook_attempts WHERE class = ''`), "delivered")
	require.Equal(t, subscribers, p.count(t, `SELECT count(*) FROM {}.surehook_attempts WHERE class = 'interrupted'`))
	require.Equal(t, 2*subscribers+1, p.count(t, `SELECT count(*) FROM {}.surehook_attempts`))
}
