package receiver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/internal/ident"
)

// Receiver takes signed events into the application's database. It is safe for concurrent
// use and needs no closing. It starts nothing: the application calls Run, which removes
// old markers.
type Receiver[Tx any] struct {
	verifier    Verifier
	inTx        InTx[Tx]
	store       dedup.Store[Tx]
	deadLetters dedup.DeadLetters[Tx] // nil if the store has none
	scope       string                // "" if it depends on the request
	cfg         Config
	counts      counts
	pruning     pruning
	working     inWork
	diagnoses   diagnoses
	unknown     unknownTypes
	noDeadline  sync.Once
}

// New makes a Receiver whose transactions are run by inTx and whose markers and
// versions are kept by store, in those same transactions. A nil cfg means all
// defaults. All problems are reported at once.
//
// scope names who sends. It keeps the events of one sender apart from those of others in
// the same store: ids and versions are unique within a scope only. Two senders with one
// scope lose events, because those of one pass for duplicates or stale events of the
// other. If the scope depends on the request, by [Secrets] or Config.ScopeOf, it must be
// empty.
func New[Tx any](verifier Verifier, inTx InTx[Tx], store dedup.Store[Tx], scope string, cfg *Config) (*Receiver[Tx], error) {
	r := &Receiver[Tx]{verifier: verifier, inTx: inTx, store: store, scope: scope, cfg: cfg.withDefaults()}
	var problems []error
	if isNil(verifier) {
		problems = append(problems, errors.New("receiver: the verifier is nil: make one with signing.NewVerifier, or with NewSecrets"))
	}
	if inTx == nil {
		problems = append(problems, errors.New("receiver: the InTx is nil: make one with receiver.SQL and an open *sql.DB, with InTx of dedup/postgres and an open pool, or give a function"))
	}
	if store == nil {
		problems = append(problems, errors.New("receiver: the store is nil: give one of the dedup packages' stores"))
	}
	problems = append(problems, r.checkScope(), r.cfg.validate(), r.cfg.Envelope.check(verifier))
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	r.deadLetters, _ = store.(dedup.DeadLetters[Tx])
	return r, nil
}

func (r *Receiver[Tx]) checkScope() error {
	_, secrets := r.verifier.(*Secrets)
	switch {
	case secrets && (r.scope != "" || r.cfg.ScopeOf != nil):
		return errors.New(`receiver: a scope or ScopeOf is given, and the verifier is Secrets: the scope is then that of the keyholder, so give "" and no ScopeOf`)
	case secrets:
		return nil
	case r.cfg.ScopeOf != nil && r.scope != "":
		return errors.New(`receiver: both a scope and ScopeOf are given: give one of them, and "" for the scope if it is ScopeOf`)
	case r.cfg.ScopeOf != nil:
		return nil
	case r.scope == "":
		return errors.New("receiver: the scope is empty: give a name for who sends, which no other sender into this database has")
	}
	if err := ident.Scope(r.scope); err != nil {
		return fmt.Errorf("receiver: the scope: %w", err)
	}
	return nil
}

// Scope returns the scope that New was given; empty: it depends on the request.
func (r *Receiver[Tx]) Scope() string { return r.scope }

// Timeout returns Config.Timeout, or its default. A caller that leases an event while the
// receiver applies it must hold the lease for longer than that, or than Trusted.Timeout.
func (r *Receiver[Tx]) Timeout() time.Duration { return r.cfg.Timeout }

func (r *Receiver[Tx]) log() *slog.Logger {
	if r.cfg.Logger != nil {
		return r.cfg.Logger
	}
	return slog.Default()
}

// pass puts one request through all steps. It is the only way from bytes to an
// effect.
func (r *Receiver[Tx]) pass(ctx context.Context, in incoming, todo order[Tx]) (Result, *Error) {
	ctx = r.begin(ctx, in.header)
	ev, answer, err := r.verify(ctx, in)
	if err != nil {
		r.rejected(ctx, err)
		return "", err
	}
	if hook := r.cfg.Hooks.Verified; hook != nil {
		r.hook(ctx, func() { hook(ctx, ev) })
	}
	if answer != "" {
		r.answerChallenge(ctx, ev)
		return answer, nil
	}
	res, cause, err := r.take(ctx, ev, in.deadline, todo)
	if err != nil {
		r.failed(ctx, ev, err)
		return "", err
	}
	r.taken(ctx, ev, res, cause)
	return res, nil
}
