package receiver

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Exec runs SQL statements without arguments in tx: one, or two with a semicolon
// between them. For pgx it is
//
//	func(ctx context.Context, tx pgx.Tx, statements string) error { _, err := tx.Exec(ctx, statements); return err }
type Exec[Tx any] func(ctx context.Context, tx Tx, statements string) error

// SQLExec is the Exec of a *sql.Tx. Its driver must take two statements at a time:
// github.com/go-sql-driver/mysql does so with multiStatements=true.
func SQLExec(ctx context.Context, tx *sql.Tx, statements string) error {
	_, err := tx.ExecContext(ctx, statements)
	return err
}

// GroupConfig has the optional settings of a Group. The zero value and nil are valid.
type GroupConfig struct {
	// Transactions is how many are open at once. SQLite has one writer, so more than one
	// gains nothing there. On a server, one or two are slower than no sharing at all,
	// since its own transactions run side by side: begin with four.
	// Defaults to 1.
	Transactions int

	// Size is how many functions share a transaction at most.
	// Defaults to 64.
	Size int

	// Timeout bounds a shared transaction. It should not be below Config.Timeout of
	// the receivers. When it is over, nothing is committed, and those whose own time is not
	// over are run again in another transaction, once.
	// Defaults to 8 s.
	Timeout time.Duration
}

// Group makes concurrent requests share transactions. One commit, and one write to the
// disk, then serves many:
//
//	group, err := receiver.NewGroup(sqlite.InTx(db), receiver.SQLExec, nil)
//	rcv, err := receiver.New(verifier, group.InTx, sqlite.New(), "billing", nil)
//
// A request that comes while no transaction is open begins one. A request that comes
// meanwhile joins that one or the next. A transaction waits for no further requests, so a
// single request is as fast as without a Group, except for the savepoint's statements.
// Each request is answered after the common commit, and with 503 if the commit fails.
//
// Within the transaction the functions run one after the other, each in its own
// goroutine behind a savepoint: one that fails or panics is rolled back alone, and
// the others are committed. If it leaves the transaction unusable (its connection was
// closed, or SQLite has rolled back by itself), nothing is committed, and the others
// are run again in another one.
//
// Each savepoint costs a trip to the database server, which is most of what sharing
// saves. The InTx of dedup/postgres avoids that trip: it sends the savepoint together
// with the marker.
//
// Sharing has a price. A slow function delays all others of its transaction, and the
// locks that a function takes are held until the common commit. Functions must heed their
// context, and must not use the savepoint "surehook".
//
// It is safe for concurrent use and starts nothing.
type Group[Tx any] struct {
	inTx InTx[Tx]
	exec Exec[Tx]
	cfg  GroupConfig

	mu    sync.Mutex
	open  int // transactions, or about to be
	queue []*member[Tx]
}

// NewGroup makes a Group whose transactions are run by inTx. A nil cfg means all
// defaults. All problems are reported at once.
func NewGroup[Tx any](inTx InTx[Tx], exec Exec[Tx], cfg *GroupConfig) (*Group[Tx], error) {
	g := &Group[Tx]{inTx: inTx, exec: exec}
	if cfg != nil {
		g.cfg = *cfg
	}
	g.cfg.Transactions = cmp.Or(g.cfg.Transactions, 1)
	g.cfg.Size = cmp.Or(g.cfg.Size, 64)
	g.cfg.Timeout = cmp.Or(g.cfg.Timeout, defaultTimeout)
	var problems []error
	if inTx == nil {
		problems = append(problems, errors.New("receiver: the group's InTx is nil: make one with receiver.SQL and an open *sql.DB, or give a function"))
	}
	if exec == nil {
		problems = append(problems, errors.New("receiver: the group's Exec is nil: give SQLExec, or a function that runs a statement"))
	}
	if g.cfg.Transactions < 0 {
		problems = append(problems, fmt.Errorf("receiver: GroupConfig.Transactions is %d: it must be positive", g.cfg.Transactions))
	}
	if g.cfg.Size < 0 {
		problems = append(problems, fmt.Errorf("receiver: GroupConfig.Size is %d: it must be positive", g.cfg.Size))
	}
	if g.cfg.Timeout < 0 {
		problems = append(problems, fmt.Errorf("receiver: GroupConfig.Timeout is %s: it must be positive", g.cfg.Timeout))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return g, nil
}

// InTx is an [InTx] whose transactions are shared. It returns fn's error if fn returned
// one, and otherwise nil only after the common commit. If ctx ends after fn has run, InTx
// returns an error at once, although fn's work may still be committed. The first function
// of a transaction is the exception: its InTx waits for the commit.
func (g *Group[Tx]) InTx(ctx context.Context, fn func(Tx) error) error {
	err := g.join(ctx, fn)
	var broken *brokenError
	if errors.As(err, &broken) && ctx.Err() == nil {
		err = g.join(ctx, fn) // once: a member that breaks every transaction must not keep this one waiting
	}
	return err
}

// brokenError says that another member made the transaction unusable, and that nothing of
// it was committed.
type brokenError struct{ err error }

func (e *brokenError) Error() string {
	return "receiver: the shared transaction was lost: " + e.err.Error()
}
func (e *brokenError) Unwrap() error { return e.err }

func (g *Group[Tx]) join(ctx context.Context, fn func(Tx) error) error {
	m := newMember(ctx, fn)
	defer close(m.gone)
	g.mu.Lock()
	leads := g.open < g.cfg.Transactions
	if leads {
		g.open++
	} else {
		g.queue = append(g.queue, m)
	}
	g.mu.Unlock()
	if leads {
		return g.lead(m)
	}
	return g.follow(m)
}

// follow waits until m is to run, has ended, or is to lead the next transaction.
func (g *Group[Tx]) follow(m *member[Tx]) error {
	ended, hasRun := m.ctx.Done(), false
	for {
		select {
		case <-m.promoted:
			return g.lead(m)
		case tx := <-m.turn:
			hasRun = true
			m.run(tx)
		case err := <-m.end:
			return err
		case <-ended:
			if g.leave(m) {
				return m.ctx.Err()
			}
			if hasRun {
				return fmt.Errorf("receiver: the common commit has not ended: %w", m.ctx.Err())
			}
			ended = nil // m is about to be run
		}
	}
}

// leave reports whether m was still in the queue.
func (g *Group[Tx]) leave(m *member[Tx]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, waiting := range g.queue {
		if waiting == m {
			g.queue = append(g.queue[:i], g.queue[i+1:]...)
			return true
		}
	}
	return false
}

// next takes the member that has waited longest out of the queue, or returns nil.
func (g *Group[Tx]) next() *member[Tx] {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 {
		return nil
	}
	m := g.queue[0]
	g.queue[0] = nil
	g.queue = g.queue[1:]
	return m
}

// handOver lets one of those who wait begin a transaction.
func (g *Group[Tx]) handOver() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 {
		g.open--
		return
	}
	m := g.queue[0]
	g.queue[0] = nil
	g.queue = g.queue[1:]
	close(m.promoted)
}
