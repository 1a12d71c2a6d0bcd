//go:build linux

package post

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// recordedWithin is how long a server may take to write down what it has answered.
const recordedWithin = time.Minute

// record reads what a server has written down: a line for each request, with its
// Webhook-Id and the status that it was answered with, or 0 if it was not.
type record func() string

func (r record) statuses() map[string][]int {
	out := map[string][]int{}
	for line := range strings.Lines(r()) {
		fields := strings.Fields(line)
		if len(fields) < 2 || !strings.HasPrefix(fields[0], "msg_") {
			continue // of something else, or not whole yet
		}
		if status, err := strconv.Atoi(fields[1]); err == nil && strings.HasSuffix(line, "\n") {
			out[fields[0]] = append(out[fields[0]], status)
		}
	}
	return out
}

// check compares the record with what came of the attempts on it, by Webhook-Id: each was
// sent once at most, and is what the server answered.
func (r record) check(t *testing.T, results map[string]Answer, untouched bool) {
	t.Helper()
	missing := func() (ids []string) {
		seen := r.statuses()
		for id, result := range results {
			if result.StatusCode != 0 && len(seen[id]) == 0 && !untouched {
				ids = append(ids, id)
			}
		}
		return ids
	}
	require.Eventually(t, func() bool { return len(missing()) == 0 }, recordedWithin, 5*time.Millisecond,
		"answers to requests that the server has not seen")
	r.once(t, results)
	seen := r.statuses()
	for id, result := range results {
		if untouched {
			require.Empty(t, seen[id], "%s reached the server", id)
		} else if result.StatusCode != 0 {
			require.Equal(t, seen[id][0], result.StatusCode, "%s was not answered so", id)
		}
	}
}

// once fails if an attempt was sent more than once.
func (r record) once(t *testing.T, results map[string]Answer) {
	t.Helper()
	seen := r.statuses()
	for id := range results {
		require.LessOrEqual(t, len(seen[id]), 1, "%s was sent more than once", id)
	}
}

// ledger is the record of a server in this process.
type ledger struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *ledger) add(id string, status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(&l.text, "%s %d\n", id, status)
}

func (l *ledger) read() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
