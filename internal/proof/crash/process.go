package crash

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// The lines that children write.
const (
	toldEvent = "event" // its id and its object's: it is committed
	toldJob   = "job"   // its id: it is accepted
	toldLate  = "late"  // an event's id and an attempt's number, whose result came too late
	toldURL   = "url"
	undone    = "undone-" // begins the id of an object whose event is rolled back
)

// patience bounds the time until a child gets to its point. It takes a second or two;
// the rest is for busy machines.
const patience = 5 * time.Minute

type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	said  strings.Builder // on its standard error
	heard chan struct{}   // closed when all its lines were read
}

// start starts this program as a child. heard gets the words of each line that the
// child writes.
func (o *order) start(ctx context.Context, heard func(words []string)) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, program), heard: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), orderVariable+"="+string(text))
	p.cmd.Stderr = &p.said
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.heard)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			heard(strings.Fields(lines.Text()))
		}
	}()
	return p, nil
}

// killed waits until the process was killed.
func (p *process) killed() error {
	timer := time.AfterFunc(patience, func() { _ = p.cmd.Process.Signal(syscall.SIGQUIT) }) // it has written its address
	defer timer.Stop()
	<-p.heard
	err := p.cmd.Wait()
	_ = p.stdin.Close()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
			return nil
		}
	}
	return fmt.Errorf("it ended by itself, or never got to its point: %w: %s", err, p.said.String())
}

// stop stops the process for longer than its leases last, and lets it go on.
func (p *process) stop() error {
	if err := pause(p.cmd.Process); err != nil {
		return err
	}
	time.Sleep(lease + lease/6) // the test is about its long absence
	return resume(p.cmd.Process)
}

func (p *process) kill() { _ = p.cmd.Process.Kill() }
