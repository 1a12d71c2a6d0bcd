package killtest

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
)

// Process is a process of a Case.
type Process struct {
	// N is its number, from 1 on: the one that Case.Child was called with.
	N int

	cmd    *exec.Cmd
	stdin  io.Closer
	killed atomic.Bool
	ended  chan struct{} // closed when it has ended and all its lines were heard

	mu     sync.Mutex
	last   string // the last line on standard output
	errors bytes.Buffer
}

// Signal sends it a signal, as one that stops it, or lets it go on.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// start starts a process. heard gets each of its lines; gone is called if it ends
// without having been killed.
func start(n int, cmd *exec.Cmd, heard func(line string), gone func(*Process)) (*Process, error) {
	p := &Process{N: n, cmd: cmd, ended: make(chan struct{})}
	cmd.Stderr = p
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		for lines := bufio.NewReader(stdout); ; {
			line, err := lines.ReadString('\n')
			if err != nil { // what has no end of line was cut off
				break
			}
			heard(line[:len(line)-1])
			p.mu.Lock()
			p.last = line
			p.mu.Unlock()
		}
		_ = cmd.Wait() // its state says how it has ended
		close(p.ended)
		if !p.killed.Load() {
			gone(p)
		}
	}()
	return p, nil
}

// kill kills it, and returns when all its lines were heard.
func (p *Process) kill() {
	p.killed.Store(true)
	_ = p.cmd.Process.Kill()
	<-p.ended
	_ = p.stdin.Close()
}

// byKill tells whether it has ended because it was killed.
func (p *Process) byKill() bool {
	how := "signal: killed"
	if runtime.GOOS == "windows" {
		how = "exit status 1"
	}
	return p.cmd.ProcessState.String() == how
}

// Write adds to what it has written on standard error.
func (p *Process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.errors.Write(b)
}

func (p *Process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.errors.String() + p.last
}
