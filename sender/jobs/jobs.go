package jobs

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/sender"
)

// Jobs accepts jobs, runs them, and reads them. It is safe for concurrent use.
type Jobs[Tx any] struct {
	store Store[Tx]
	kinds map[string]*Kind[Tx]
	cfg   Config[Tx]
	inTx  func(ctx context.Context, fn func(tx Tx) error) error
	read  func(ctx context.Context, fn func(tx Tx) error) error // is inTx for what only reads
	woken chan struct{}

	running  atomic.Bool
	mu       sync.Mutex
	attempts map[string]*attempt[Tx] // of this process, by the ids of their jobs
}

// New returns Jobs of some kinds on a store. A process that only accepts and reads jobs
// gives the same kinds and does not call Run. A job stays queued while no process runs
// its kind, or none with an Announcer if it has a callback URL.
//
// If the configuration has an Announcer, its InTx runs all transactions. If the store is a
// sender.Reader, that runs those that only read.
func New[Tx any](store Store[Tx], kinds []Kind[Tx], cfg *Config[Tx]) (*Jobs[Tx], error) {
	var c Config[Tx]
	if cfg != nil {
		c = *cfg
	}
	c = c.withDefaults()
	errs := c.problems()
	if store == nil {
		errs = append(errs, errors.New("jobs: New needs a store"))
	}
	if len(kinds) == 0 {
		errs = append(errs, errors.New("jobs: New needs at least one kind of job"))
	}
	all, err := checkKinds(kinds)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	j := &Jobs[Tx]{store: store, kinds: all, cfg: c, woken: make(chan struct{}, 1), attempts: map[string]*attempt[Tx]{}}
	j.inTx = store.InTx
	if c.Announcer != nil {
		j.inTx = c.Announcer.InTx
	}
	j.read = j.inTx
	if reader, ok := store.(sender.Reader[Tx]); ok {
		j.read = reader.InReadTx
	}
	return j, nil
}

// Submit stores a job in a transaction of its own. Once it returns without an error
// the job is durable, and the workers of this process are awake.
func (j *Jobs[Tx]) Submit(ctx context.Context, s Submission) (out Submitted, err error) {
	err = j.inTx(ctx, func(tx Tx) error {
		out, err = j.SubmitTx(ctx, tx, s)
		return err
	})
	if err != nil {
		return Submitted{}, err
	}
	j.Wake()
	return out, nil
}

// SubmitTx stores a job in tx. It is run if and only if tx commits; from then on it
// is durable. It locks nothing but the idempotency key, if there is one.
//
// It returns ErrInvalid, ErrKind, ErrIdempotencyKey, or the Announcer's error about the
// callback URL; after these tx is unchanged. After any other error the caller must roll
// back. If that error matches sender.ErrRetryTx, the caller should run the transaction
// again.
//
// The package does not learn of the caller's commit: workers find the job when they
// poll. Call Wake after the commit to start it sooner.
func (j *Jobs[Tx]) SubmitTx(ctx context.Context, tx Tx, s Submission) (Submitted, error) {
	if len(s.Input) == 0 {
		s.Input = []byte("null")
	}
	refused := j.check(&s)
	// InsertTx finds a repeat by itself. But what was right when the first one came may be
	// refused by now, and admitting a URL may change something.
	if s.IdempotencyKey != "" && (refused != nil || s.CallbackURL != "") && len(s.keyProblems()) == 0 {
		if first, found, err := j.store.KeyTx(ctx, tx, s.KeyScope, s.IdempotencyKey); err != nil || found {
			return s.answered(first, found, err)
		}
	}
	if refused != nil {
		return Submitted{}, refused
	}
	r := Record{IdempotencyKey: s.IdempotencyKey, KeyScope: s.KeyScope, Hash: s.hash()}
	r.ID, r.Kind, r.Owner, r.Input, r.CallbackURL = newid.New("job_", j.cfg.Now()), s.Kind, s.Owner, s.Input, s.CallbackURL
	if s.CallbackURL != "" {
		var err error
		if r.CallbackURL, err = j.cfg.Announcer.AdmitTx(ctx, tx, s.Owner, s.CallbackURL); err != nil {
			return Submitted{}, err
		}
	}
	return s.answered(j.store.InsertTx(ctx, tx, r))
}

// Wake makes the workers of this process look for jobs now. Call it when a transaction
// with a job has committed. It never blocks. It is only a hint: without it they find
// the job by polling.
func (j *Jobs[Tx]) Wake() {
	select {
	case j.woken <- struct{}{}:
	default:
	}
}
