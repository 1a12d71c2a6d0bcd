package crash

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/jobs"
)

// The stages of a transaction, in their order. While committing, PostgreSQL has been
// sent the commit and nobody reads its answer; SQLite is somewhere in its writes.
const (
	inside     = "inside"     // its work is done, and the commit has not begun
	before     = "before"     // the commit is the next thing to happen
	committing = "committing" // the commit may happen or not
	committed  = "committed"  // nobody knows of it yet
)

var stages = []string{inside, before, committing, committed}

// The transactions, and the statement, with its argument, by which each is recognised.
var transactions = []struct {
	name string
	is   *regexp.Regexp
	with string
}{
	{"publish", regexp.MustCompile(`^INSERT INTO things`), ""}, // comes after the event
	{"expand", regexp.MustCompile(`UPDATE surehook_expanded SET event|INSERT INTO surehook_feed `), ""},
	{"claim", regexp.MustCompile(`INSERT (OR FAIL )?INTO surehook_leases`), ""},
	{"record", regexp.MustCompile(`INSERT (OR FAIL )?INTO surehook_attempts`), ""},
	{"dead-letter", regexp.MustCompile(`INSERT INTO surehook_notices`), string(sender.NoticeDeadLettered)},
	{"disable", regexp.MustCompile(`INSERT INTO surehook_notices`), string(sender.NoticeDisabled)},
	{"replay", regexp.MustCompile(`UPDATE surehook_replays (r )?SET (position|at) `), ""},
	{"job", regexp.MustCompile(`UPDATE surehook_jobs SET status`), string(jobs.Succeeded)},
	{"receive", regexp.MustCompile(`^INSERT INTO effects`), ""},
}

const rollback = "publish rolled back" // the event is written, and the rollback has not begun

// On the wire, of an attempt.
const (
	dialling        = "attempt dialling"
	midBody         = "attempt mid-body"         // the endpoint has read a part of the body
	bodySent        = "attempt body sent"        // all of it is written
	headersReceived = "attempt headers received" // the answer has begun
	answered        = "attempt answered"         // it is read, and nothing is recorded
)

// Points are the moments at which processes are killed, by name.
func Points() []string {
	all := []string{rollback, dialling, midBody, bodySent, headersReceived, answered}
	for _, tx := range transactions {
		for _, stage := range stages {
			all = append(all, tx.name+" "+stage)
		}
	}
	return all
}

func received(point string) bool { return strings.HasPrefix(point, "receive ") }

// trap kills its process when a point is hit for the n-th time.
type trap struct {
	point string
	hit   int64
	hits  atomic.Int64
}

func (t *trap) at(point string) {
	if t.due(point) {
		t.spring()
	}
}

func (t *trap) due(point string) bool {
	return t.point == point && t.hits.Add(1) == t.hit
}

// spring kills the process at once: no deferred function runs, no buffer is flushed.
func (t *trap) spring() {
	killSelf()
	select {} // the signal is on its way
}

// marks name the transactions that a connection is in.
type marks struct{ names []string }

// add marks the transaction that a statement belongs to, and reports which are new.
func (m *marks) add(text string, args any) (fresh []string) {
	for _, tx := range transactions {
		if !slices.Contains(m.names, tx.name) && tx.is.MatchString(text) && (tx.with == "" || strings.Contains(fmt.Sprint(args), tx.with)) {
			m.names = append(m.names, tx.name)
			fresh = append(fresh, tx.name)
		}
	}
	return fresh
}

// due reports whether the process must be killed at a stage of the transaction.
func (m *marks) due(t *trap, stage string) bool {
	for _, name := range m.names {
		if t.due(name + " " + stage) {
			return true
		}
	}
	return false
}
