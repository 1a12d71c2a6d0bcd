package inboxtest

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// Broken runs the rules with these names without failing a test, and returns the rules that
// the store broke, with the messages.
func Broken[Tx any](t *testing.T, open func(t *testing.T) Harness[Tx], names []string) map[string][]string {
	broken := map[string][]string{}
	for _, r := range rules[Tx]() {
		if !slices.Contains(names, r.name) {
			continue
		}
		rec := &recorder{}
		done := make(chan struct{})
		go func() {
			defer close(done)
			check(t, rec, r, open, 3*time.Second) // a broken store may wait for itself
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
