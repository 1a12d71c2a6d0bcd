package child

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// stopTime is how long a child may take to end once it is asked to.
const stopTime = 20 * time.Second

// Process is a child, as its parent sees it. It is not safe for concurrent use.
type Process struct {
	name  string
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	ended bool
}

// Start starts a program with params on its standard input, and waits until it is
// ready. Unless ready is nil, the program's first answer is decoded into it. The
// program is killed when ctx ends.
func Start(ctx context.Context, name, path string, args []string, params, ready any) (*Process, error) {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the %s: %w", name, err)
	}
	p := &Process{name: name, cmd: cmd, in: in, out: bufio.NewReaderSize(out, 1<<20)}
	if err := p.Ask(params, ready); err != nil {
		p.Kill()
		return nil, err
	}
	return p, nil
}

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ask sends a question and decodes the answer, unless it is nil.
func (p *Process) Ask(question, answer any) error {
	if err := json.NewEncoder(p.in).Encode(question); err != nil {
		return fmt.Errorf("asking the %s: %w", p.name, err)
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("the %s ended instead of answering: %w", p.name, errors.Join(err, p.Stop()))
	}
	var r reply
	if err := json.Unmarshal(line, &r); err != nil {
		return fmt.Errorf("the %s answered %q: %w", p.name, line, err)
	}
	if r.Error != "" {
		return fmt.Errorf("the %s: %s", p.name, r.Error)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(r.Answer, answer)
}

// Stop asks the process to end, and kills it if it does not end in time.
func (p *Process) Stop() error {
	if p.ended {
		return nil
	}
	_ = p.in.Close()
	killer := time.AfterFunc(stopTime, func() { _ = p.cmd.Process.Kill() })
	defer killer.Stop()
	p.ended = true
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("the %s: %w", p.name, err)
	}
	return nil
}

// Kill ends the process without giving it time.
func (p *Process) Kill() {
	if p.ended {
		return
	}
	p.ended = true
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

type reply struct {
	Answer json.RawMessage `json:"answer,omitempty"`
	Error  string          `json:"error,omitempty"`
}
