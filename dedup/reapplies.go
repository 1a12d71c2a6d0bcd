package dedup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surehook/surehook/internal/ident"
)

// Reapply is a request to apply events again that were taken before: the first
// application had a bug, or its effect was spoilt afterwards. By itself it changes
// nothing. It takes effect when an event that it covers arrives once more, as a
// redelivery or in a catch-up run. Each request applies an event at most once.
//
// ID, Object and From say which events it covers. At least one of them must be set, and
// an event must match each that is set.
type Reapply struct {
	// Number rises with each request. The store assigns it.
	Number int64
	Scope  string

	ID     string // the event's; empty: any
	Object Object // what the event is about; zero: anything

	// From and Until bound the time at which the event was taken first, which is its
	// marker's time: at From or later, and before Until. Zero is no bound.
	From, Until time.Time

	// At is when it was asked; never zero. Markers that are younger are not covered: their
	// events were taken after the request. All three times are kept to the microsecond.
	At time.Time
}

// Reapplies keeps requests beside the markers, and decides by them about duplicates. It
// is an optional interface of a [Store]; all stores of this module have it. Only
// duplicates pay for it, with one look at the requests.
//
// A caller that takes events asks by [TakeAgain]. The rules of [Store] about
// transactions, isolation, values and errors hold here too. Take the marker first, then
// the version, here as well.
type Reapplies[Tx any] interface {
	// AskReapply keeps a request and returns its number, which is higher than that of
	// every request before. Nobody else sees it until the transaction commits.
	AskReapply(ctx context.Context, tx Tx, r Reapply) (number int64, err error)

	// ListReapplies returns at most limit requests of the scope in the order of their
	// numbers, beginning after the number after; 0 is the beginning. A limit below 1 is
	// refused with ErrInvalid.
	ListReapplies(ctx context.Context, tx Tx, scope string, after int64, limit int) ([]Reapply, error)

	// CancelReapply removes a request, or returns an error that must match ErrNotFound.
	// Events that were applied again under it stay as they are.
	CancelReapply(ctx context.Context, tx Tx, scope string, number int64) error

	// TakeReapply reports whether the event, which must have a marker, is due to be applied
	// again. It is if a request covers it whose number is higher than the one under which it
	// was applied again last. It then notes the highest such number in the marker. Comparing
	// and noting are one step: if several transactions ask for the same event, exactly one
	// gets true. obj is the event's object, or zero if it has none. A request for an object
	// covers no event without one.
	TakeReapply(ctx context.Context, tx Tx, scope, id string, obj Object) (due bool, err error)

	// AdvanceAgain is Advance for an event that is applied again: it reports true also if
	// the version equals the stored one. After a true of either kind no other transaction
	// must be able to advance the version until this one has ended: the older state would
	// be stored over the newer one.
	AdvanceAgain(ctx context.Context, tx Tx, scope string, obj Object, version int64) (current bool, err error)
}

// TakeAgain is for an event that Mark or MarkAndAdvance has called a duplicate, in the
// same transaction. due reports whether a request covers it, which is used up then.
// current reports whether it is to be applied. An event without a version (0) always is.
// Another one is if its version is the stored one or newer, and the stored one is raised
// to it. An older state is not current. A dead letter of a due event is removed: the
// caller applies the event now, or it was overtaken. A store that is no [Reapplies] has no
// requests.
//
//	fresh, newer, err := dedup.MarkAndAdvance(ctx, store, tx, scope, ev.ID, now, ev.Object, ev.Version)
//	if err == nil && !fresh {
//		_, newer, err = dedup.TakeAgain(ctx, store, tx, scope, ev.ID, ev.Object, ev.Version)
//	}
//	if err != nil || !newer {
//		return err
//	}
//	return apply(ctx, tx, ev)
func TakeAgain[Tx any](ctx context.Context, s Store[Tx], tx Tx, scope, id string, obj Object, version int64) (due, current bool, err error) {
	if version != 0 {
		if err := CheckVersion(scope, obj, version); err != nil {
			return false, false, err
		}
	}
	requests, ok := s.(Reapplies[Tx])
	if !ok {
		return false, false, nil
	}
	if due, err = requests.TakeReapply(ctx, tx, scope, id, obj); err != nil || !due {
		return false, false, err
	}
	if letters, ok := s.(DeadLetters[Tx]); ok {
		if err := letters.Discard(ctx, tx, scope, id); err != nil && !errors.Is(err, ErrNotFound) {
			return false, false, err
		}
	}
	if version == 0 {
		return true, true, nil
	}
	if current, err = requests.AdvanceAgain(ctx, tx, scope, obj, version); err != nil {
		return false, false, err
	}
	return true, current, nil
}

// Prepare is for implementations: it returns the request in the form in which it is to be
// stored, or an error that matches [ErrInvalid] and names everything that is wrong.
func (r Reapply) Prepare() (Reapply, error) {
	errs := []error{ident.Scope(r.Scope)}
	if r.ID != "" {
		errs = append(errs, ident.EventID(r.ID))
	}
	if r.Object != (Object{}) {
		errs = append(errs, ident.ObjectType(r.Object.Type), ident.ObjectID(r.Object.ID))
	}
	if r.ID == "" && r.Object == (Object{}) && r.From.IsZero() {
		errs = append(errs, errors.New("the request names no event, no object and no time from which on: it would cover everything, so at least one of them must be given"))
	}
	if r.At.IsZero() {
		errs = append(errs, errors.New("the time is zero: it must be when the request was made"))
	}
	if r.Number != 0 {
		errs = append(errs, fmt.Errorf("the number is %d: the store assigns it, so it must be 0", r.Number))
	}
	var timeErr error
	if r.From, timeErr = keptTime("from", r.From); timeErr != nil {
		errs = append(errs, timeErr)
	}
	if r.Until, timeErr = keptTime("until", r.Until); timeErr != nil {
		errs = append(errs, timeErr)
	}
	if r.At, timeErr = keptTime("at", r.At); timeErr != nil {
		errs = append(errs, timeErr)
	}
	if !r.From.IsZero() && !r.Until.IsZero() && !r.From.Before(r.Until) {
		errs = append(errs, fmt.Errorf("the span from %s until %s is empty: its end must come after its beginning",
			r.From.Format(time.RFC3339Nano), r.Until.Format(time.RFC3339Nano)))
	}
	if err := invalid(errs...); err != nil {
		return Reapply{}, err
	}
	return r, nil
}

// keptTime returns the time to the microsecond. Every database can keep these years, and
// no event is older.
func keptTime(what string, t time.Time) (time.Time, error) {
	if t.IsZero() {
		return time.Time{}, nil
	}
	if u := t.UTC(); u.Year() < 1980 || u.Year() > 9999 {
		return time.Time{}, fmt.Errorf("the time %q is in the year %d: it must be from 1980 to 9999", what, u.Year())
	}
	return time.UnixMicro(t.UnixMicro()).UTC(), nil
}

// CheckListReapplies is for implementations: it reports what is wrong with the arguments
// of ListReapplies in an error that matches [ErrInvalid], or nil.
func CheckListReapplies(scope string, after int64, limit int) error {
	var cursor error
	if after < 0 {
		cursor = fmt.Errorf("cursor is %d: it must be a request's number, or 0", after)
	}
	return invalid(ident.Scope(scope), cursor, checkLimit(limit))
}

// CheckReapplyNumber is for implementations: it reports what is wrong with a scope and a
// request's number in an error that matches [ErrInvalid], or nil.
func CheckReapplyNumber(scope string, number int64) error {
	var below error
	if number < 1 {
		below = fmt.Errorf("the request's number is %d: it must be one that AskReapply returned", number)
	}
	return invalid(ident.Scope(scope), below)
}

// CheckTakeReapply is for implementations: it reports what is wrong with the arguments of
// TakeReapply in an error that matches [ErrInvalid], or nil.
func CheckTakeReapply(scope, id string, obj Object) error {
	errs := []error{ident.Scope(scope), ident.EventID(id)}
	if obj != (Object{}) {
		errs = append(errs, ident.ObjectType(obj.Type), ident.ObjectID(obj.ID))
	}
	return invalid(errs...)
}
