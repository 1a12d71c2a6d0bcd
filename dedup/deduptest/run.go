package deduptest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/surehook/surehook/dedup"
)

// Harness is a store, with the functions that the suite needs to use it.
type Harness[Tx any] struct {
	// Store is the store under test. If it has dedup.DeadLetters, dedup.Reapplies or
	// dedup.MarkAdvancer, they are tested too.
	Store dedup.Store[Tx]

	// InTx runs fn in one transaction and returns the error of fn or of the commit. It
	// must commit when fn returns nil and roll back when fn returns an error or panics.
	// After a panic it may panic on or return an error. It may run fn again after
	// ErrRetryTx. It must be safe for concurrent use, by as many as 64 goroutines at a
	// time.
	InTx func(ctx context.Context, fn func(Tx) error) error

	// Reopen opens the same data again, and shares nothing with the first harness. That one
	// is not used any more: close it first, if a file can be opened only once. Reopen is nil
	// for a store that does not outlive a process.
	Reopen func(t *testing.T) Harness[Tx]

	// Lose moves the file away that the store has open, and back moves it to its place again.
	// The store must refuse to write meanwhile, because the file would be gone with the process.
	// No new connection must be opened meanwhile: it would make a file. Lose is nil for a store
	// without a file, and for one that a server keeps.
	Lose func(t *testing.T) (back func())
}

// Run runs the suite. open is called once for each subtest. It may return the same
// data each time: the suite uses other scopes in each subtest, and removes all
// markers that are older than a year.
//
// Stores that share their data with something else at the same time cannot be
// tested: pruning is counted.
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
	e := &env[Tx]{reporter: report, t: t, ctx: ctx, scope: "deduptest/" + r.name + "/" + unique()}
	e.Harness = open(t)
	r.check(e)
}

// A rule is one thing that a store must do.
type rule[Tx any] struct {
	name  string
	says  string
	check func(e *env[Tx])
}

func rules[Tx any]() []rule[Tx] {
	return slices.Concat(
		markRules[Tx](), versionRules[Tx](), markAdvanceRules[Tx](), concurrencyRules[Tx](), writerRules[Tx](),
		argumentRules[Tx](), pruneRules[Tx](), letterRules[Tx](), reapplyRules[Tx](), reopenRules[Tx](), lostRules[Tx](),
	)
}

// reporter has the methods of *testing.T that the rules need. Fatalf is for the rule's
// own goroutine, outside transactions.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}
