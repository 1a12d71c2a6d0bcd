package deduptest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/surehook/surehook/dedup"
)

// Harness is a store and what the suite needs to use it.
type Harness[Tx any] struct {
	// Store is what is tested. If it has dedup.DeadLetters they are tested too, and
	// dedup.MarkAdvancer.
	Store dedup.Store[Tx]

	// InTx runs fn in one transaction and returns what fn or the commit said. It
	// must commit when fn returns nil and roll back when fn returns an error or
	// panics; it may panic on or return an error then. It may run fn again after
	// ErrRetryTx, and must be safe for concurrent use, as many as 64 at a time.
	InTx func(ctx context.Context, fn func(Tx) error) error

	// Reopen, if the store outlives a process, opens the same data anew, sharing
	// nothing with the first harness.
	Reopen func(t *testing.T) Harness[Tx]
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

// limit is how long one rule may take before all its waits end.
const limit = time.Minute

// check holds the store against one rule. What is wrong goes to report, which in
// the suite's own tests is not t.
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
		argumentRules[Tx](), pruneRules[Tx](), letterRules[Tx](), reopenRules[Tx](),
	)
}

// reporter is what the rules need of *testing.T. Fatalf is for the rule's own
// goroutine, outside transactions.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}
