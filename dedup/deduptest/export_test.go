package deduptest

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// Broken tries a store against the named rules without failing a test, and returns those
// that it broke, with the messages. A broken store may wait for itself: limit bounds each rule.
func Broken[Tx any](t *testing.T, names []string, limit time.Duration, open func(t *testing.T) Harness[Tx]) map[string][]string {
	broken := map[string][]string{}
	for _, r := range rules[Tx]() {
		if !slices.Contains(names, r.name) {
			continue
		}
		rec := &recorder{}
		done := make(chan struct{})
		go func() {
			defer close(done)
			check(t, rec, r, open, limit)
		}()
		<-done
		if len(rec.said) > 0 {
			broken[r.name] = rec.said
		}
	}
	return broken
}

// Names returns the names of all rules.
func Names() (names []string) {
	for _, r := range rules[struct{}]() {
		names = append(names, r.name)
	}
	return names
}

type recorder struct {
	mu   sync.Mutex
	said []string
}

func (*recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}
