package simulation

import (
	"crypto/sha256"
	"fmt"
	"hash"
)

// traceKept is how many lines a violation shows.
const traceKept = 80

// trace has everything that happened, in the simulation's own names, because ids are
// random.
type trace struct {
	hash  hash.Hash
	watch func(line string)
	last  [traceKept][]byte
	n     int
}

func newTrace(watch func(line string)) trace { return trace{hash: sha256.New(), watch: watch} }

// say notes that something happened.
func (w *world) say(format string, args ...any) {
	t := &w.trace
	line := &t.last[t.n%traceKept]
	t.n++
	*line = fmt.Appendf((*line)[:0], "%12.6f ", w.now.Sub(begins).Seconds())
	*line = fmt.Appendf(*line, format, args...)
	*line = append(*line, '\n')
	t.hash.Write(*line)
	if t.watch != nil {
		t.watch(string((*line)[:len(*line)-1]))
	}
}

// lines returns the last lines.
func (t *trace) lines() (lines []string) {
	for i := max(0, t.n-traceKept); i < t.n; i++ {
		line := t.last[i%traceKept]
		lines = append(lines, string(line[:len(line)-1]))
	}
	return lines
}
