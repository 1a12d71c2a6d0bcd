package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/internal/dberr"
)

// storing bounds a claim, and the recording of a failure: the end of ctx must not leave
// claimed events behind, which nobody works on until their lease ends.
const storing = 10 * time.Second

// looking bounds the look for events of others, which reads all that are overdue. Nothing else
// would end it on a connection that is dead without a word.
const looking = time.Minute

// overdue is for how long events of others must have been due to be told of, and how often
// they are looked for: an inbox that is busy, or starts anew, claims its own before.
const overdue = time.Hour

// Run applies the recorded events until ctx ends. Then it finishes the events in work,
// which Config.Timeout bounds, and returns nil. It returns ErrRunning, or says that
// the tables are not migrated, at once. Every other failure is tried again.
func (in *Inbox[Tx]) Run(ctx context.Context) error {
	if in.running.Swap(true) {
		return ErrRunning
	}
	defer in.running.Store(false)
	slots := make(chan struct{}, in.cfg.Workers)
	var working sync.WaitGroup
	defer working.Wait()
	began := false // later, tables may be away while somebody restores them
	for failures := 0; ; {
		free := in.take(ctx, slots)
		if free == 0 {
			return nil
		}
		claims, err := in.claim(ctx, free)
		if !began && errors.Is(err, dberr.ErrUnmigrated) {
			return err
		}
		if !began && err == nil {
			began = true
			working.Go(func() { in.watch(ctx) })
		}
		for range free - len(claims) {
			<-slots
		}
		for _, c := range claims {
			working.Go(func() {
				defer func() { <-slots }()
				in.work(ctx, c)
			})
		}
		switch {
		case err != nil:
			failures++
			in.rest(ctx, failures, err)
		case len(claims) < free:
			failures = 0
			in.idle(ctx)
		default:
			failures = 0
		}
	}
}

// take waits for a free slot and takes all that are free, or none if ctx has ended.
func (in *Inbox[Tx]) take(ctx context.Context, slots chan struct{}) (free int) {
	select {
	case slots <- struct{}{}:
		free++
	case <-ctx.Done():
		return 0
	}
	for ; free < cap(slots); free++ {
		select {
		case slots <- struct{}{}:
			continue
		default:
		}
		break
	}
	if ctx.Err() != nil {
		return 0 // nobody uses slots any more
	}
	return free
}

func (in *Inbox[Tx]) claim(ctx context.Context, limit int) (claims []Claim, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storing)
	defer cancel()
	err = in.transact(ctx, func(tx Tx) (err error) {
		claims, err = in.store.ClaimTx(ctx, tx, in.rcv.Scope(), limit, in.cfg.Lease)
		return err
	})
	if err != nil {
		return nil, err // events that were claimed in spite of it are due when their lease ends
	}
	return claims, nil
}

// watch looks for events that nobody seems to claim, until ctx ends.
func (in *Inbox[Tx]) watch(ctx context.Context) {
	for ctx.Err() == nil {
		in.lookAround(ctx)
		sleep(ctx, overdue)
	}
}

// lookAround tells of events that have waited for long in scopes that are none of this
// inbox's. Their inbox may have gone, and then nothing else would ever tell of them.
func (in *Inbox[Tx]) lookAround(ctx context.Context) {
	var left Overdue
	bounded, cancel := context.WithTimeout(ctx, looking)
	defer cancel()
	err := in.transact(bounded, func(tx Tx) (err error) {
		left, err = in.store.OverdueTx(bounded, tx, in.rcv.Scope(), overdue)
		return err
	})
	switch {
	case ctx.Err() != nil:
	case err != nil:
		in.log().LogAttrs(ctx, slog.LevelWarn, "inbox: looking for events that nobody claims failed, and will be tried again",
			slog.Duration("pause", overdue), slog.Any("error", err))
	case left.Events > 0:
		in.log().LogAttrs(ctx, slog.LevelWarn, "inbox: events of other scopes have been due for an hour, and this inbox leaves them alone: run an inbox whose receiver has their scope",
			slog.Int("events", left.Events), slog.String("scope", left.Scope))
	}
}

// transact runs fn in a transaction, and again if it lost against another one.
func (in *Inbox[Tx]) transact(ctx context.Context, fn func(Tx) error) (err error) {
	const runs = 4
	for run := range runs {
		err = in.contained(ctx, func() error {
			return in.inTx(ctx, func(tx Tx) error {
				// Here, too, so that even an InTx that does not expect panics rolls back.
				return in.contained(ctx, func() error { return fn(tx) })
			})
		})
		if err == nil || dberr.Classify(err) != dberr.Retry {
			return err
		}
		sleep(ctx, rand.N(5*time.Millisecond<<run))
	}
	return err
}

// contained makes an error of a panic in an InTx or a store of the application's own: the
// failure is tried again, and does not end the process.
func (in *Inbox[Tx]) contained(ctx context.Context, call func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			in.panicked(ctx, "inbox: a transaction panicked", v)
			err = fmt.Errorf("inbox: a transaction panicked with a %T", v)
		}
	}()
	return call()
}

// idle waits until something may be due.
func (in *Inbox[Tx]) idle(ctx context.Context) {
	// Varied, so that processes that were started together do not come together.
	timer := time.NewTimer(in.cfg.Poll*9/10 + rand.N(in.cfg.Poll/5+1))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-in.wake:
	case <-ctx.Done():
	}
}

// rest waits after a claim that failed.
func (in *Inbox[Tx]) rest(ctx context.Context, failures int, err error) {
	pause := backoff.Equal().Apply(backoff.Exponential{Base: 50 * time.Millisecond, Max: storing}.Delay(failures), rand.Float64())
	in.log().LogAttrs(ctx, slog.LevelWarn, "inbox: claiming failed, and will be tried again",
		slog.Duration("pause", pause), slog.Any("error", err))
	sleep(ctx, pause)
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
