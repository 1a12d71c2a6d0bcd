package receiver_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
)

// script is a database that notes its commands, and refuses the commands that a test names.
type script struct {
	mu     sync.Mutex
	log    []string
	refuse map[string]error // the next time
	reruns int
}

func (s *script) say(what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, what)
	err := s.refuse[what]
	delete(s.refuse, what)
	return err
}

func (s *script) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := strings.Join(s.log, ", ")
	s.log = nil
	return strings.NewReplacer("RELEASE SAVEPOINT surehook; SAVEPOINT surehook", "next", "RELEASE SAVEPOINT surehook", "release",
		"ROLLBACK TO SAVEPOINT surehook", "undo", "SAVEPOINT surehook", "savepoint").Replace(out)
}

func (s *script) inTx(ctx context.Context, fn func(*script) error) error {
	if err := s.say("begin"); err != nil {
		return err
	}
	for {
		if err := fn(s); err != nil {
			_ = s.say("rollback")
			return err
		}
		s.mu.Lock()
		s.reruns--
		again := s.reruns >= 0
		s.mu.Unlock()
		if !again {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return s.say("commit")
		}
		_ = s.say("again")
	}
}

func (s *script) group(t *testing.T, cfg *receiver.GroupConfig) *receiver.Group[*script] {
	t.Helper()
	g, err := receiver.NewGroup(s.inTx, func(_ context.Context, tx *script, statements string) error { return tx.say(statements) }, cfg)
	require.NoError(t, err)
	return g
}

// crowd lets n functions come while the first one runs, and returns their results. Function
// 0 runs first, and the others run in their order.
func crowd(t *testing.T, g *receiver.Group[*script], fns ...func(*script) error) []error {
	t.Helper()
	go1 := make(chan struct{})
	first := fns[0]
	fns[0] = func(tx *script) error {
		<-go1
		return first(tx)
	}
	errs := make([]error, len(fns))
	var wg sync.WaitGroup
	for i, fn := range fns {
		wg.Go(func() {
			errs[i] = errors.New("panicked")
			defer func() { _ = recover() }()
			errs[i] = g.InTx(t.Context(), fn)
		})
		synctest.Wait()
	}
	close(go1)
	wg.Wait()
	return errs
}

var errOwn = errors.New("its own")

func says(what string, err error) func(*script) error {
	return func(tx *script) error {
		_ = tx.say(what)
		return err
	}
}

func TestGroup(t *testing.T) {
	lost := errors.New("connection lost")
	for name, c := range map[string]struct {
		refuse map[string]error
		reruns int
		cfg    *receiver.GroupConfig
		fns    []func(*script) error
		log    string
		errs   []error
	}{
		"alone": {fns: []func(*script) error{says("a", nil)}, log: "begin, savepoint, a, release, commit", errs: []error{nil}},
		"three share a commit": {
			fns: []func(*script) error{says("a", nil), says("b", nil), says("c", nil)},
			log: "begin, savepoint, a, next, b, next, c, release, commit", errs: []error{nil, nil, nil},
		},
		"a failure is undone alone": {
			fns: []func(*script) error{says("a", nil), says("b", errOwn), says("c", nil)},
			log: "begin, savepoint, a, next, b, undo, c, release, commit", errs: []error{nil, errOwn, nil},
		},
		"the first fails": {
			fns: []func(*script) error{says("a", errOwn), says("b", nil)},
			log: "begin, savepoint, a, undo, b, release, commit", errs: []error{errOwn, nil},
		},
		"the last fails": {
			fns: []func(*script) error{says("a", nil), says("b", errOwn)},
			log: "begin, savepoint, a, next, b, undo, commit", errs: []error{nil, errOwn},
		},
		"nothing is left to commit": {
			fns: []func(*script) error{says("a", errOwn), says("b", errOwn)},
			log: "begin, savepoint, a, undo, b, undo, rollback", errs: []error{errOwn, errOwn},
		},
		"a panic is undone alone, the leader's too": {
			fns: []func(*script) error{func(*script) error { panic("a") }, says("b", nil), func(*script) error { panic("c") }, says("d", nil)},
			log: "begin, savepoint, undo, b, next, undo, d, release, commit", errs: []error{errors.New("panicked"), nil, errors.New("panicked"), nil},
		},
		"the common commit fails for all but those who failed": {
			refuse: map[string]error{"commit": lost},
			fns:    []func(*script) error{says("a", nil), says("b", errOwn), says("c", nil)},
			log:    "begin, savepoint, a, next, b, undo, c, release, commit", errs: []error{lost, errOwn, lost},
		},
		"it cannot begin": {
			refuse: map[string]error{"begin": lost},
			fns:    []func(*script) error{says("a", nil)},
			log:    "begin", errs: []error{lost},
		},
		"an error that was kept quiet about is undone": {
			refuse: map[string]error{"RELEASE SAVEPOINT surehook; SAVEPOINT surehook": lost},
			fns:    []func(*script) error{says("a", nil), says("b", nil)},
			log:    "begin, savepoint, a, next, undo, b, release, commit", errs: []error{lost, nil},
		},
		"the last one kept quiet": {
			refuse: map[string]error{"RELEASE SAVEPOINT surehook": lost},
			fns:    []func(*script) error{says("a", nil), says("b", nil)},
			log:    "begin, savepoint, a, next, b, release, undo, commit", errs: []error{nil, lost},
		},
		"who breaks it fails, the others are run again": {
			refuse: map[string]error{"ROLLBACK TO SAVEPOINT surehook": lost},
			// c had not joined yet, and leads the next transaction. a comes meanwhile.
			fns: []func(*script) error{says("a", nil), says("b", errOwn), func(s *script) error {
				synctest.Wait()
				return s.say("c")
			}},
			log:  "begin, savepoint, a, next, b, undo, rollback, begin, savepoint, c, next, a, release, commit",
			errs: []error{nil, errOwn, nil},
		},
		"at most Size share": {
			cfg: &receiver.GroupConfig{Size: 2},
			fns: []func(*script) error{says("a", nil), says("b", nil), says("c", nil)},
			log: "begin, savepoint, a, next, b, release, commit, begin, savepoint, c, release, commit", errs: []error{nil, nil, nil},
		},
		"the InTx runs it again": {
			reruns: 1,
			fns:    []func(*script) error{says("a", nil), says("b", errOwn), says("c", nil)},
			log:    "begin, savepoint, a, next, b, undo, c, release, again, savepoint, a, next, b, undo, c, release, commit",
			errs:   []error{nil, errOwn, nil},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{refuse: c.refuse, reruns: c.reruns}
				errs := crowd(t, s.group(t, c.cfg), c.fns...)
				require.Equal(t, c.log, s.take())
				require.Equal(t, c.errs, errs)
			})
		})
	}
}

// No function gets its result before the commit. A function that leaves the queue is not
// run.
func TestGroupWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(script)
		g := s.group(t, nil)
		hold := make(chan struct{})
		errs := make(chan error, 3)
		go func() {
			errs <- g.InTx(t.Context(), func(*script) error {
				<-hold
				return nil
			})
		}()
		synctest.Wait()
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			errs <- g.InTx(ctx, says("left", nil))
		}()
		go func() { errs <- g.InTx(t.Context(), says("stays", nil)) }()
		require.ErrorIs(t, <-errs, context.DeadlineExceeded)
		close(hold)
		require.NoError(t, <-errs)
		require.NoError(t, <-errs)
		require.Equal(t, "begin, savepoint, next, stays, release, commit", s.take())
	})
	// A request whose time ends between its own work and the commit does not know the
	// outcome.
	synctest.Test(t, func(t *testing.T) {
		s := new(script)
		g := s.group(t, nil)
		first, last := make(chan struct{}), make(chan struct{})
		errs := make(chan error, 3)
		go func() { errs <- g.InTx(t.Context(), func(*script) error { <-first; return nil }) }()
		synctest.Wait()
		left := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			left <- g.InTx(ctx, says("b", nil))
		}()
		synctest.Wait()
		go func() { errs <- g.InTx(t.Context(), func(*script) error { <-last; return nil }) }()
		synctest.Wait()
		close(first)
		err := <-left
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "the common commit has not ended")
		close(last)
		require.NoError(t, <-errs)
		require.NoError(t, <-errs)
	})
}

// A function that ends its goroutine does not affect the others.
func TestGroupGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(script)
		errs := crowd(t, s.group(t, nil), func(*script) error { runtime.Goexit(); return nil }, says("b", nil), func(*script) error { runtime.Goexit(); return nil }, says("d", nil))
		require.NoError(t, errs[1])
		require.NoError(t, errs[3])
		require.Contains(t, s.take(), "commit")
	})
	// The leader ends its goroutine when the InTx runs everything again. Then nothing is
	// committed, and the other function is run in a transaction of its own.
	synctest.Test(t, func(t *testing.T) {
		s := &script{reruns: 1}
		runs := 0
		errs := crowd(t, s.group(t, nil), func(*script) error {
			if runs++; runs == 2 {
				runtime.Goexit()
			}
			return nil
		}, says("b", nil))
		require.NoError(t, errs[1])
		require.Equal(t, "begin, savepoint, next, b, release, again, savepoint, begin, savepoint, b, release, commit", s.take())
	})
}

// The end of the first request's time ends neither the work of the others nor the commit. A
// request whose time is over already is not run.
func TestGroupOutlivesItsLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(script)
		g := s.group(t, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start, errs := make(chan struct{}), make(chan error, 2)
		go func() { errs <- g.InTx(ctx, func(*script) error { <-start; return nil }) }()
		synctest.Wait()
		go func() { errs <- g.InTx(t.Context(), func(*script) error { time.Sleep(2 * time.Second); return nil }) }()
		synctest.Wait()
		close(start)
		require.NoError(t, <-errs)
		require.NoError(t, <-errs)
		require.Equal(t, "begin, savepoint, next, release, commit", s.take())
		require.ErrorIs(t, g.InTx(ctx, says("late", nil)), context.DeadlineExceeded)
		require.NotContains(t, s.take(), "late")
	})
	// Nor is it run again if another one has broken the transaction.
	synctest.Test(t, func(t *testing.T) {
		s := &script{refuse: map[string]error{"ROLLBACK TO SAVEPOINT surehook": errors.New("connection lost")}}
		g := s.group(t, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start, first, second := make(chan struct{}), make(chan error, 1), make(chan error, 1)
		go func() { first <- g.InTx(ctx, func(*script) error { <-start; return nil }) }()
		synctest.Wait()
		go func() {
			second <- g.InTx(t.Context(), func(*script) error { time.Sleep(2 * time.Second); return errOwn })
		}()
		synctest.Wait()
		close(start)
		require.ErrorContains(t, <-first, "the shared transaction was lost: connection lost")
		require.ErrorIs(t, <-second, errOwn)
		require.Equal(t, "begin, savepoint, next, undo, rollback", s.take())
	})
}

// The error of a shared transaction whose time is over blames no function.
// Those whose own time is not over are run again, also the one that fails because of it.
func TestGroupTimeout(t *testing.T) {
	run := func(t *testing.T, commit time.Duration, fns ...func(*script) error) []error {
		ended := func(ctx context.Context) error {
			if ctx.Err() != nil {
				return sql.ErrTxDone // as database/sql says it
			}
			return nil
		}
		s := new(script)
		g, err := receiver.NewGroup(func(ctx context.Context, fn func(*script) error) error {
			err := s.inTx(context.WithoutCancel(ctx), fn)
			time.Sleep(commit)
			return cmp.Or(err, ended(ctx))
		}, func(ctx context.Context, tx *script, statements string) error {
			return cmp.Or(ended(ctx), tx.say(statements))
		}, &receiver.GroupConfig{Timeout: 8 * time.Second})
		require.NoError(t, err)
		return crowd(t, g, fns...)
	}
	slowAtFirst := func(took time.Duration, err error) func(*script) error {
		return func(*script) error {
			time.Sleep(took)
			defer func() { took, err = 0, nil }()
			return err
		}
	}
	synctest.Test(t, func(t *testing.T) {
		errs := run(t, 0, slowAtFirst(7*time.Second, nil), slowAtFirst(2*time.Second, sql.ErrTxDone), says("c", nil))
		require.Equal(t, []error{nil, nil, nil}, errs)
	})
	synctest.Test(t, func(t *testing.T) {
		errs := run(t, 9*time.Second, says("a", nil))
		require.ErrorIs(t, errs[0], context.DeadlineExceeded)
		require.ErrorContains(t, errs[0], "GroupConfig.Timeout, which is 8s, was over")
		require.NotErrorIs(t, errs[0], sql.ErrTxDone)
	})
	synctest.Test(t, func(t *testing.T) { // each time
		errs := run(t, 0, func(*script) error {
			time.Sleep(9 * time.Second)
			return nil
		})
		require.ErrorIs(t, errs[0], context.DeadlineExceeded)
		require.ErrorContains(t, errs[0], "GroupConfig.Timeout, which is 8s, was over")
		require.NotErrorIs(t, errs[0], sql.ErrTxDone)
	})
	// Who comes when it is over has no part in it.
	synctest.Test(t, func(t *testing.T) {
		s := new(script)
		errs := crowd(t, s.group(t, &receiver.GroupConfig{Timeout: 8 * time.Second}), slowAtFirst(9*time.Second, nil), says("b", nil))
		require.ErrorIs(t, errs[0], context.DeadlineExceeded)
		require.NoError(t, errs[1])
		require.Equal(t, "begin, savepoint, release, begin, savepoint, b, release, commit", s.take())
	})
	// A transaction that could not be begun in that time has the database's own words.
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("too many clients already")
		g, err := receiver.NewGroup(func(ctx context.Context, _ func(*script) error) error {
			<-ctx.Done()
			return full
		}, func(context.Context, *script, string) error { return nil }, nil)
		require.NoError(t, err)
		require.Equal(t, full, g.InTx(t.Context(), says("a", nil)))
	})
}

// Where the InTx runs all again, a request that has left meanwhile is not waited for, and has no
// part in what is committed.
func TestGroupMemberThatHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{reruns: 1}
		g := s.group(t, nil)
		start, errs, left := make(chan struct{}), make(chan error, 2), make(chan error, 1)
		go func() {
			errs <- g.InTx(t.Context(), func(tx *script) error {
				<-start
				return tx.say("a")
			})
		}()
		synctest.Wait()
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			left <- g.InTx(ctx, says("left", nil))
		}()
		synctest.Wait()
		go func() {
			errs <- g.InTx(t.Context(), func(tx *script) error {
				time.Sleep(2 * time.Second)
				return tx.say("c")
			})
		}()
		synctest.Wait()
		close(start)
		require.ErrorContains(t, <-left, "the common commit has not ended")
		require.NoError(t, <-errs)
		require.NoError(t, <-errs)
		require.Equal(t, "begin, savepoint, a, next, left, next, c, release, again, savepoint, a, next, undo, c, release, commit", s.take())
	})
}

// If what a function has kept quiet about cannot be undone, nothing is committed, and all are
// run again.
func TestGroupThatCannotUndo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := errors.New("connection lost")
		s := &script{refuse: map[string]error{"RELEASE SAVEPOINT surehook; SAVEPOINT surehook": lost, "ROLLBACK TO SAVEPOINT surehook": lost}}
		errs := crowd(t, s.group(t, nil), says("a", nil), says("b", nil))
		require.Equal(t, []error{nil, nil}, errs)
		require.True(t, strings.HasPrefix(s.take(), "begin, savepoint, a, next, undo, rollback, begin"))
	})
}

// A request whose time ends just before its turn is not run, and affects no other.
func TestGroupMemberThatIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(script)
		g, err := receiver.NewGroup(s.inTx, func(_ context.Context, tx *script, statements string) error {
			time.Sleep(2 * time.Second)
			return tx.say(statements)
		}, &receiver.GroupConfig{Timeout: time.Minute})
		require.NoError(t, err)
		errs, late := make(chan error, 2), make(chan error, 1)
		go func() { errs <- g.InTx(t.Context(), says("a", nil)) }()
		synctest.Wait()
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // after the first savepoint, and before the next
			defer cancel()
			late <- g.InTx(ctx, says("late", nil))
		}()
		synctest.Wait()
		go func() { errs <- g.InTx(t.Context(), says("b", nil)) }()
		require.Equal(t, context.DeadlineExceeded, <-late)
		require.NoError(t, <-errs)
		require.NoError(t, <-errs)
		require.Equal(t, "begin, savepoint, a, next, undo, b, release, commit", s.take())
	})
}

func TestGroupTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open, most atomic.Int32
		s := new(script)
		g, err := receiver.NewGroup(func(ctx context.Context, fn func(*script) error) error {
			most.Store(max(most.Load(), open.Add(1)))
			defer open.Add(-1)
			time.Sleep(time.Second)
			return s.inTx(ctx, fn)
		}, func(context.Context, *script, string) error { return nil }, &receiver.GroupConfig{Transactions: 3})
		require.NoError(t, err)
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if err := g.InTx(t.Context(), says("x", nil)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		require.Equal(t, int32(3), most.Load())
		require.Equal(t, 20, strings.Count(s.take(), "x"))
	})
}

func TestNewGroupReportsEverything(t *testing.T) {
	_, err := receiver.NewGroup[*sql.Tx](nil, nil, &receiver.GroupConfig{Transactions: -1, Size: -1, Timeout: -1})
	for _, problem := range []string{"InTx is nil", "Exec is nil", "Transactions", "Size", "Timeout"} {
		require.ErrorContains(t, err, problem)
	}
	g, err := receiver.NewGroup(func(context.Context, func(*script) error) error { return nil }, func(context.Context, *script, string) error { return nil }, nil)
	require.NoError(t, err)
	require.ErrorContains(t, g.InTx(t.Context(), nil), "without having run")
}

// Deliveries that fail in every way share transactions with others. Each of the others is
// applied once, and nothing is left of the failing ones.
func TestGroupOnSQLite(t *testing.T) {
	b, db := onSQLite(t)
	var commits atomic.Int32
	group, err := receiver.NewGroup(func(ctx context.Context, fn func(*sql.Tx) error) error {
		commits.Add(1)
		return b.inTx(ctx, fn)
	}, receiver.SQLExec, &receiver.GroupConfig{Timeout: patient})
	require.NoError(t, err)
	testGroup(t, group, sqlite.New(), b)
	require.Less(t, commits.Load(), int32(150), "transactions")
	require.Zero(t, db.Stats().InUse)
}

// patient is the time of 200 requests at once on a busy machine.
const patient = 2 * time.Minute

func testGroup[Tx any](t *testing.T, group *receiver.Group[Tx], store dedup.Store[Tx], b bed[Tx]) {
	t.Helper()
	const n = 200
	gather := make(chan struct{})
	var joined, waiting atomic.Int32
	rcv := newReceiver(t, func(ctx context.Context, fn func(Tx) error) error {
		if joined.Add(1) == n {
			close(gather)
		}
		return group.InTx(ctx, fn)
	}, store, &receiver.Config{Timeout: patient})
	srv := httptest.NewServer(rcv.Handler(receiver.State(func(ctx context.Context, tx Tx, ev receiver.Event) error {
		if waiting.Add(1) == 1 {
			<-gather // so that the others find a transaction to share
		}
		if err := b.effect(ctx, tx, ev); err != nil {
			return err
		}
		switch ev.Type {
		case "fails":
			return errors.New("no")
		case "panics":
			panic("no")
		case "hopeless":
			return receiver.Permanent(errors.New("no"))
		case "lost":
			return pgError("40001")
		}
		return nil
	})))
	defer srv.Close()
	snd := newSender(t)
	want := map[string]int{"fails": 500, "panics": 500, "hopeless": 200, "lost": 503, "works": 200}
	types := []string{"works", "fails", "works", "panics", "works", "hopeless", "works", "lost"}
	events := make([]receivertest.Event, n)
	var wg sync.WaitGroup
	for i := range events {
		events[i] = receivertest.NewEvent("subscriber", fmt.Sprint("sub_", i), 1)
		events[i].Type = types[i%len(types)]
		wg.Go(func() {
			a, err := snd.Request(events[i]).Post(t.Context(), srv.URL)
			if err != nil || a.Status != want[events[i].Type] {
				t.Error(events[i].Type, a.Status, err)
			}
		})
	}
	wg.Wait()
	for _, ev := range events {
		switch ev.Type {
		case "works":
			require.Equal(t, state{Marker: true, Effects: 1, Version: 1}, b.state(t, ev))
		case "hopeless":
			require.Equal(t, state{Marker: true, DeadLetter: true}, b.state(t, ev))
		default:
			require.Equal(t, state{}, b.state(t, ev), ev.Type)
		}
	}
}
