package receiver_test

import (
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
