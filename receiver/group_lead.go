package receiver

import (
	"context"
	"errors"
	"fmt"

	"github.com/surehook/surehook/internal/savepoint"
)

// errNothingLeft ends a transaction in which every function failed.
var errNothingLeft = errors.New("receiver: there is nothing to commit")

// shared is one transaction and its members. The goroutine of the first member leads it.
type shared[Tx any] struct {
	group   *Group[Tx]
	members []*member[Tx]
	failed  []error // of each member: what its function returned, or what took its work back
	panics  any     // of the leader's own function
}

func (g *Group[Tx]) lead(m *member[Tx]) error {
	s := &shared[Tx]{group: g, members: []*member[Tx]{m}, failed: []error{nil}}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(m.ctx), g.cfg.Timeout)
	defer cancel()
	defer g.handOver()
	outcome := error(&brokenError{errUnfinished}) // if the leader's goroutine ends
	defer func() { s.tell(outcome) }()
	outcome = s.transact(ctx)
	if s.panics != nil {
		panic(s.panics)
	}
	if s.failed[0] != nil {
		return s.failed[0]
	}
	return outcome
}

// tell reports to each of the other members what became of its work.
func (s *shared[Tx]) tell(outcome error) {
	for i, m := range s.members[1:] {
		if err := s.failed[i+1]; err != nil {
			m.end <- err
		} else {
			m.end <- outcome
		}
	}
}

// transact returns nil if the work of all members that did not fail is committed. It
// believes what happened rather than the InTx.
func (s *shared[Tx]) transact(ctx context.Context) error {
	called, lost := false, error(nil)
	err := s.group.inTx(ctx, func(tx Tx) error {
		called = true
		lost = s.run(ctx, tx)
		return lost
	})
	if called && err != nil && ctx.Err() != nil { // the driver's error may say that a function has ended it
		err = fmt.Errorf("receiver: GroupConfig.Timeout, which is %s, was over before the common commit: %w", s.group.cfg.Timeout, ctx.Err())
		if lost != nil {
			lost = err
		}
	}
	switch {
	case !called && err == nil:
		return errors.New("receiver: the group's InTx returned nil without having run its function")
	case lost != nil:
		return &brokenError{lost}
	default:
		return err
	}
}

// run runs one member after the other, and takes in those that have come meanwhile. The
// error means that nothing may be committed.
func (s *shared[Tx]) run(ctx context.Context, tx Tx) error {
	last := -1 // whose savepoint is not released yet
	for i := 0; i < len(s.members) || s.admit(ctx); i++ {
		var err error
		switch {
		case i == 0:
			err = s.group.exec(ctx, tx, savepoint.Set)
		case last >= 0:
			err = s.release(ctx, tx, last, savepoint.Next)
		}
		if err != nil {
			return err
		}
		if last = i; s.runMember(i, tx) == nil {
			continue
		}
		last = -1 // its savepoint is the next one's
		if err := s.group.exec(ctx, tx, savepoint.Back); err != nil {
			if ctx.Err() != nil {
				s.failed[i] = nil // perhaps only because the time of all was over: it is run again, too
			}
			return err
		}
	}
	if last >= 0 {
		if err := s.release(ctx, tx, last, savepoint.Release); err != nil {
			return err
		}
	}
	for _, err := range s.failed {
		if err == nil {
			return nil
		}
	}
	return errNothingLeft
}

// release ends the savepoint of member i. If the database refuses, the member has
// kept quiet about an error that made the transaction unusable: then its own work is
// taken back, and the savepoint stays.
func (s *shared[Tx]) release(ctx context.Context, tx Tx, i int, how string) error {
	err := s.group.exec(ctx, tx, how)
	if err == nil {
		return nil
	}
	if again := s.group.exec(ctx, tx, savepoint.Back); again != nil {
		return err
	}
	s.failed[i] = err
	return nil
}

func (s *shared[Tx]) admit(ctx context.Context) bool {
	if len(s.members) == s.group.cfg.Size || ctx.Err() != nil {
		return false
	}
	m := s.group.next()
	if m == nil {
		return false
	}
	s.members, s.failed = append(s.members, m), append(s.failed, nil)
	return true
}

func (s *shared[Tx]) runMember(i int, tx Tx) error {
	m := s.members[i]
	if i > 0 {
		s.failed[i] = m.take(tx)
		return s.failed[i]
	}
	func() {
		defer func() { s.panics = recover() }()
		m.run(tx)
	}()
	s.failed[0] = <-m.ran
	return s.failed[0]
}
