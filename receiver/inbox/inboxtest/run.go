package inboxtest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/surehook/surehook/receiver/inbox"
)

// Harness is a store, with the functions that the suite needs to use it.
type Harness[Tx any] struct {
	// Store is the store under test.
	Store inbox.Store[Tx]

	// InTx runs fn in one transaction and returns the error of fn or of the commit. It
	// must be safe for concurrent use, by as many as 16 goroutines at a time.
	InTx func(ctx context.Context, fn func(Tx) error) error

	// Lose moves the file away that the store has open, and back moves it to its place again.
	// The store must refuse to write meanwhile, because the file would be gone with the process.
	// No new connection must be opened meanwhile: it would make a file. Lose is nil for a store
	// without a file, and for one that a server keeps.
	Lose func(t *testing.T) (back func())
}

// Run runs the suite. open is called once for each subtest and must return an empty inbox
// that nobody else uses.
func Run[Tx any](t *testing.T, open func(t *testing.T) Harness[Tx]) {
	for _, r := range rules[Tx]() {
		t.Run(r.name, func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("the rule: %s", r.says)
				}
			}()
			check(t, t, r, open, limit)
		})
	}
}

// limit is how long one rule may take before all its waits end. It is for stores that wait for
// ever: on a slow disk a rule's hundreds of commits take a minute and more.
const limit = 5 * time.Minute

// check tries the store against one rule. Violations go to report, which in the suite's
// own tests is not t.
func check[Tx any](t *testing.T, report reporter, r rule[Tx], open func(t *testing.T) Harness[Tx], limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), limit)
	defer cancel()
	r.check(&env[Tx]{reporter: report, t: t, Harness: open(t), ctx: ctx})
}

// A rule is one thing that a store must do.
type rule[Tx any] struct {
	name  string
	says  string
	check func(e *env[Tx])
}

func rules[Tx any]() []rule[Tx] {
	return slices.Concat(recordRules[Tx](), claimRules[Tx](), resultRules[Tx](), concurrencyRules[Tx](), argumentRules[Tx](), lostRules[Tx]())
}

// reporter has the methods of *testing.T that the rules need. Fatalf is for the rule's
// own goroutine, outside transactions.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}
