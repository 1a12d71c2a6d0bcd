package receiver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/surehook/surehook/dedup"
)

// ReapplyRequest says which events are to be applied again. At least one of Event, Object
// and From must be set. An event is covered if it matches each that is set.
type ReapplyRequest struct {
	// Scope is the scope in which the events were taken.
	// Defaults to the receiver's own; with Config.ScopeOf or Secrets it must be given.
	Scope string

	Event  string       // the event's ID; empty: any
	Object dedup.Object // what the event is about; zero: anything

	// From and Until are a span, in which the events were taken here for the first time:
	// at From or later, and before Until. Zero is no bound.
	From, Until time.Time
}

// Reapply asks for events to be applied again that were taken before, because the function
// had a bug, or because what it wrote was spoilt afterwards. Nothing is kept here from
// which they could be applied, so by itself it changes nothing. It takes effect when such
// an event arrives once more. Ask the sender to redeliver or replay it. Or read the feed
// again with Catchup.Reconcile of package catchup, from its beginning or from an earlier
// cursor. (Run reads only what follows.) Then the function runs, in one transaction with
// the note that this request was used for the event, and the result is [Reapplied] where
// it would have been [Duplicate]. Each request applies an event at most once. If the
// function fails, the request stays.
//
// A state is applied if no newer one is stored, so of an object's redelivered events it is
// the newest that counts. The older ones are skipped as [Stale]. A fact is applied in any
// case: its function must bear that. A dead letter of such an event is removed when it is
// applied. If the function says [Permanent] again, the event becomes a dead letter anew,
// and the request is used up for it.
//
// Events that are taken after the request are not covered. The request is kept for as long
// as the markers that it could cover, and can be cancelled; see dedup.Reapplies. Reapply
// returns its number. An error matches dedup.ErrInvalid if the request is not valid, and
// nothing was changed unless its Reason is [ReasonCommit].
func (r *Receiver[Tx]) Reapply(ctx context.Context, req ReapplyRequest) (number int64, err error) {
	requests, ok := r.store.(dedup.Reapplies[Tx])
	if !ok {
		return 0, fail(ReasonDatabase, errors.New("the store keeps no requests to apply events again: it must be a dedup.Reapplies"))
	}
	scope, failure := r.scopeGiven("ReapplyRequest.Scope", req.Scope)
	if failure != nil {
		return 0, failure
	}
	ask := dedup.Reapply{Scope: scope, ID: req.Event, Object: req.Object, From: req.From, Until: req.Until, At: r.cfg.Now()}
	if _, err := ask.Prepare(); err != nil {
		return 0, fmt.Errorf("receiver: ReapplyRequest: %w", err)
	}
	bounded, cancel := background(ctx, time.Now().Add(r.cfg.Timeout))
	defer cancel()
	failure = r.transact(bounded, func(tx Tx) *Error {
		var err error
		if number, err = requests.AskReapply(bounded, tx, ask); err != nil {
			return failDB(bounded, ReasonDatabase, err)
		}
		return nil
	})
	if failure != nil {
		return 0, failure
	}
	r.log().LogAttrs(ctx, slog.LevelInfo, "receiver: events will be applied again when they arrive once more, by a redelivery or a catch-up run",
		slog.Int64("request", number), slog.String("scope", scope), slog.String("event_id", req.Event),
		slog.String("object_type", req.Object.Type), slog.String("object_id", req.Object.ID),
		slog.Time("from", req.From), slog.Time("until", req.Until))
	return number, nil
}

// takeAgain decides about a duplicate: whether a request covers it, and whether it is then
// to be applied.
func (r *Receiver[Tx]) takeAgain(ctx context.Context, tx Tx, ev Event, version int64, kind taskKind) (due, current bool, err error) {
	if kind == factTask || !versioned(ev, version) {
		version = 0
	}
	return dedup.TakeAgain(ctx, r.store, tx, ev.Scope, ev.ID, ev.Object, version)
}

// advanceMarked advances the version for an event whose marker is there. The event may
// have been applied before, so its version may be the stored one.
func (r *Receiver[Tx]) advanceMarked(ctx context.Context, tx Tx, ev Event, version int64) (bool, error) {
	if requests, ok := r.store.(dedup.Reapplies[Tx]); ok {
		return requests.AdvanceAgain(ctx, tx, ev.Scope, ev.Object, version)
	}
	return r.store.Advance(ctx, tx, ev.Scope, ev.Object, version)
}

// errFetchFirst ends the transaction of a thin event that looked like a duplicate and is
// to be applied all the same: its object's state must be fetched before.
var errFetchFirst = errors.New("receiver: the object's state must be fetched first")

func isFetchFirst(failure *Error) bool {
	return failure != nil && failure.Reason == ReasonApply && errors.Is(failure.Err, errFetchFirst)
}
