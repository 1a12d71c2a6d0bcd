package killtest

import (
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Case says which processes run, when they are killed, and what must hold then.
type Case struct {
	// Child starts the nth process, from 1 on: see [Child.Command]. It may be another
	// program than the test's.
	Child func(n int) *exec.Cmd
	// Rounds is the number of points at which processes are killed.
	Rounds int
	// Processes run at the same time. Zero means one.
	Processes int
	// Replace has one process killed in a round, any of them, and replaced before Check.
	// Otherwise all are killed, one after the other, and none runs while Check does.
	Replace bool
	// Point returns when it is time to kill: see [Lines].
	Point func(r *Running)
	// Within is the time after the point in which the kill comes, at random.
	Within time.Duration
	// Heard gets each whole line that a process prints, one at a time, or is nil. When
	// Check is called, Heard has had all that a killed process printed.
	Heard func(line string)
	// Check is called after each kill, or is nil.
	Check func()
}

// Lines is a Point: a number of lines, at random, from least to most, which the processes
// print after the round has begun.
func Lines(least, most int) func(*Running) {
	return func(r *Running) { r.Lines(least + rand.IntN(most-least+1)) }
}

// Run runs a case. When it returns, no process is left. A process that ends without
// having been killed, or has a data race, fails the test. A test that fails shows what
// each process has written on standard error, and its last line.
func Run(t testing.TB, c Case) {
	t.Helper()
	r := &Running{t: t, c: c, more: make(chan struct{}, 1), gone: make(chan *Process, 1), all: make([]*Process, max(1, c.Processes))}
	t.Cleanup(r.end)
	for range c.Rounds {
		r.begin()
		c.Point(r)
		for _, p := range r.victims {
			r.pause()
			r.kill(p)
		}
		if c.Replace {
			r.fill()
		}
		if c.Check != nil {
			c.Check()
		}
	}
	for _, p := range r.running() {
		r.kill(p)
	}
}

// Running are the processes of a case, in a round.
type Running struct {
	t       testing.TB
	c       Case
	all     []*Process // nil where one is not replaced yet
	started []*Process // all that there ever were
	victims []*Process
	more    chan struct{} // a line was heard
	gone    chan *Process // one that has ended by itself

	mu    sync.Mutex
	lines int // heard in this round
}

// Lines waits until the processes have printed n lines since the round has begun.
func (r *Running) Lines(n int) {
	r.t.Helper()
	for r.heard() < n {
		r.Await(r.more)
	}
}

// patience is how long the next signal may take: a process starts in it, on a slow machine.
const patience = 5 * time.Minute

// Await waits for a signal. It fails the test if a process ends, or if the signal does
// not come for five minutes.
func (r *Running) Await(signal <-chan struct{}) {
	r.t.Helper()
	select {
	case <-signal:
	case p := <-r.gone:
		r.t.Fatalf("process %d has ended by itself: %s", p.N, p.cmd.ProcessState)
	case <-time.After(patience):
		r.t.Fatalf("the point at which to kill was not reached within %s", patience)
	}
}

// Victims are the processes that are to be killed in this round.
func (r *Running) Victims() []*Process { return r.victims }

// Others are the processes that are not to be killed in this round.
func (r *Running) Others() (others []*Process) {
	for _, p := range r.running() {
		if !slices.Contains(r.victims, p) {
			others = append(others, p)
		}
	}
	return others
}

func (r *Running) running() []*Process {
	return slices.DeleteFunc(slices.Clone(r.all), func(p *Process) bool { return p == nil })
}

func (r *Running) begin() {
	r.t.Helper()
	r.mu.Lock()
	r.lines = 0
	r.mu.Unlock()
	r.fill()
	r.victims = r.running()
	if r.c.Replace {
		i := rand.IntN(len(r.victims))
		r.victims = r.victims[i : i+1]
	}
}

func (r *Running) fill() {
	r.t.Helper()
	for i, p := range r.all {
		if p != nil {
			continue
		}
		n := len(r.started) + 1
		p, err := start(n, r.c.Child(n), r.hear, func(p *Process) {
			select {
			case r.gone <- p:
			default: // one is enough
			}
		})
		if err != nil {
			r.t.Fatalf("starting process %d: %v", n, err)
		}
		r.all[i], r.started = p, append(r.started, p)
	}
}

func (r *Running) hear(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines++
	if r.c.Heard != nil {
		r.c.Heard(line)
	}
	select {
	case r.more <- struct{}{}:
	default:
	}
}

func (r *Running) heard() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lines
}

// pause waits for nothing: it varies the moment of the kill.
func (r *Running) pause() {
	if r.c.Within > 0 {
		<-time.After(rand.N(r.c.Within))
	}
}

func (r *Running) kill(p *Process) {
	r.t.Helper()
	p.kill()
	r.all[slices.Index(r.all, p)] = nil
	if !p.byKill() {
		r.t.Fatalf("process %d was to be killed, and has ended by itself: %s", p.N, p.cmd.ProcessState)
	}
	if strings.Contains(p.said(), "WARNING: DATA RACE") {
		r.t.Errorf("process %d has a data race", p.N)
	}
}

// end leaves no process behind, and shows what they have said if the test has failed.
func (r *Running) end() {
	for _, p := range r.running() {
		p.kill()
	}
	if !r.t.Failed() {
		return
	}
	const most = 4 << 10
	for _, p := range r.started {
		if said := p.said(); said != "" {
			r.t.Logf("process %d, %s, has said:\n%s", p.N, p.cmd.ProcessState, said[max(0, len(said)-most):])
		}
	}
}
