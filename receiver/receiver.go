package receiver

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/surehook/surehook/dedup"
)

// Receiver takes signed events into the application's database. It is safe for
// concurrent use, starts nothing and needs no closing.
type Receiver[Tx any] struct {
	verifier    Verifier
	inTx        InTx[Tx]
	store       dedup.Store[Tx]
	deadLetters dedup.DeadLetters[Tx] // nil if the store has none
	cfg         Config
	working     inWork
	diagnoses   diagnoses
	noDeadline  sync.Once
}

// New makes a Receiver whose transactions are run by inTx and whose markers and
// versions are kept by store, in those same transactions. A nil cfg means all
// defaults. All problems are reported at once.
func New[Tx any](verifier Verifier, inTx InTx[Tx], store dedup.Store[Tx], cfg *Config) (*Receiver[Tx], error) {
	r := &Receiver[Tx]{verifier: verifier, inTx: inTx, store: store, cfg: cfg.withDefaults()}
	var problems []error
	if isNil(verifier) {
		problems = append(problems, errors.New("receiver: the verifier is nil: make one with signing.NewVerifier, or with NewSecrets"))
	}
	if _, scoped := verifier.(*Secrets); scoped && cfg != nil && (cfg.Scope != "" || cfg.ScopeOf != nil) {
		problems = append(problems, errors.New("receiver: Scope or ScopeOf is set, and the verifier is Secrets: the scope is then what its lookup returns"))
	}
	if inTx == nil {
		problems = append(problems, errors.New("receiver: the InTx is nil: make one with receiver.SQL and an open *sql.DB, or give a function"))
	}
	if store == nil {
		problems = append(problems, errors.New("receiver: the store is nil: give one of the dedup packages' stores"))
	}
	problems = append(problems, r.cfg.validate(), r.cfg.Envelope.check(verifier))
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	r.deadLetters, _ = store.(dedup.DeadLetters[Tx])
	return r, nil
}

// Timeout returns Config.Timeout, or its default. A caller that leases an event while the
// receiver applies it must hold the lease for longer.
func (r *Receiver[Tx]) Timeout() time.Duration { return r.cfg.Timeout }

func (r *Receiver[Tx]) log() *slog.Logger {
	if r.cfg.Logger != nil {
		return r.cfg.Logger
	}
	return slog.Default()
}

// pass puts one request through all steps. It is the only way from bytes to an
// effect.
func (r *Receiver[Tx]) pass(ctx context.Context, in incoming, todo work[Tx]) (Result, *Error) {
	ctx = r.begin(ctx, in.header)
	ev, answer, err := r.verify(ctx, in)
	if err != nil {
		r.rejected(ctx, err)
		return "", err
	}
	if hook := r.cfg.Hooks.Verified; hook != nil {
		r.hook(ctx, func() { hook(ctx, ev) })
	}
	if answer != nil {
		return r.answerChallenge(ctx, ev, answer), nil
	}
	res, cause, err := r.take(ctx, ev, in.deadline, todo)
	if err != nil {
		r.failed(ctx, ev, err)
		return "", err
	}
	r.taken(ctx, ev, res, cause)
	return res, nil
}
