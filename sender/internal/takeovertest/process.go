// Package takeovertest tests takeovers with real processes. If a process is gone,
// another one attempts its deliveries again within seconds. If a process was stopped
// and comes back, its late results change nothing. A program whose tests call [Killed]
// or [Stopped] calls [Child] first, in TestMain.
package takeovertest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

const (
	nameVariable  = "SUREHOOK_TAKEOVER_NAME"
	placeVariable = "SUREHOOK_TAKEOVER_PLACE"

	// An attempt has more time than a process is stopped for, so its answer is late and
	// not its own timeout. The lease is the default, a minute.
	timeout = 20 * time.Second

	// lost is printed for a result that came too late, with the time at which its attempt began.
	lost = "lost %d"
)

func keys() (*sender.Keys, error) {
	return sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{1}, 32)})
}

// Child dispatches, and does not return, if this process was started to do that; else
// it returns at once. open opens the store at a place that [Killed] or [Stopped] was
// given.
func Child(open func(place string) (dispatch.Store, error)) {
	name := os.Getenv(nameVariable)
	if name == "" {
		return
	}
	go func() { // the parent's end is ours
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	if err := runDispatcher(name, os.Getenv(placeVariable), open); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func runDispatcher(name, place string, open func(place string) (dispatch.Store, error)) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	store, err := open(place)
	if err != nil {
		return err
	}
	k, err := keys()
	if err != nil {
		return err
	}
	d, err := dispatch.New(store, k, &dispatch.Config{
		UserAgent: name, Timeout: timeout, Slots: 16, Network: sender.Network{AllowPrivateNetworks: true},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Hooks: dispatch.Hooks{Recorded: func(_ context.Context, r *dispatch.Recorded) {
			if r.Lost {
				fmt.Printf(lost+"\n", r.Result.StartedAt.UnixNano())
			}
		}},
	})
	if err != nil {
		return err
	}
	return d.Run(ctx)
}

// process is a process that dispatches.
type process struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
	said  *strings.Builder
}

// start starts a process, whose attempts have its name.
func start(t *testing.T, name, place string) *process {
	t.Helper()
	program, err := os.Executable()
	noError(t, err)
	p := &process{cmd: exec.CommandContext(t.Context(), program), said: &strings.Builder{}}
	p.cmd.Env = append(os.Environ(), nameVariable+"="+name, placeVariable+"="+place)
	p.cmd.Stderr = p.said
	_, err = p.cmd.StdinPipe()
	noError(t, err)
	out, err := p.cmd.StdoutPipe()
	noError(t, err)
	p.lines = bufio.NewScanner(out)
	noError(t, p.cmd.Start())
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
		if t.Failed() {
			t.Logf("process %s:\n%s", name, p.said)
		}
	})
	return p
}

// kill is kill -9.
func (p *process) kill(t *testing.T) {
	t.Helper()
	noError(t, p.cmd.Process.Kill())
	err := p.cmd.Wait()
	check(t, err != nil && strings.Contains(err.Error(), "signal: killed"), "it was not killed: %v", err)
}

func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	noError(t, p.cmd.Process.Signal(s))
}

// end ends the process as a deployment does. It returns the rest of what tells returns.
func (p *process) end(t *testing.T) []time.Time {
	t.Helper()
	p.signal(t, syscall.SIGTERM)
	rest := p.tells(t, math.MaxInt)
	noError(t, p.cmd.Wait())
	return rest
}

// tells waits until the process has told of n results that came too late, or has ended. It
// returns when their attempts began.
func (p *process) tells(t *testing.T, n int) (began []time.Time) {
	t.Helper()
	for len(began) < n && p.lines.Scan() {
		var at int64
		_, err := fmt.Sscanf(p.lines.Text(), lost, &at)
		noError(t, err)
		began = append(began, time.Unix(0, at))
	}
	noError(t, p.lines.Err())
	return began
}
