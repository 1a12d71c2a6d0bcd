// Package niltest tries the stores of this module with a transaction that is nil.
package niltest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/surehook/surehook/dedup"
)

// Store is what each of the stores on a database is.
type Store[Tx any] interface {
	dedup.Store[Tx]
	dedup.DeadLetters[Tx]
	dedup.Reapplies[Tx]
}

// Refused fails the test unless each method of s refuses a transaction that is nil.
func Refused[Tx any](t *testing.T, s Store[Tx]) {
	t.Helper()
	var tx Tx
	ctx, obj := t.Context(), dedup.Object{Type: "subscriber", ID: "1"}
	errs := map[string]error{
		"Mark":            second(s.Mark(ctx, tx, "test", "a", time.Now())),
		"Advance":         second(s.Advance(ctx, tx, "test", obj, 1)),
		"Version":         second(s.Version(ctx, tx, "test", obj)),
		"Prune":           second(s.Prune(ctx, tx, time.Now(), 1)),
		"SetAside":        s.SetAside(ctx, tx, dedup.DeadLetter{Scope: "test", ID: "a", Type: "x", At: time.Now()}),
		"DeadLetter":      second(s.DeadLetter(ctx, tx, "test", "a")),
		"ListDeadLetters": second(s.ListDeadLetters(ctx, tx, "test", "", 1)),
		"Discard":         s.Discard(ctx, tx, "test", "a"),
		"AskReapply":      second(s.AskReapply(ctx, tx, dedup.Reapply{Scope: "test", ID: "a", At: time.Now()})),
		"ListReapplies":   second(s.ListReapplies(ctx, tx, "test", 0, 1)),
		"CancelReapply":   s.CancelReapply(ctx, tx, "test", 1),
		"TakeReapply":     second(s.TakeReapply(ctx, tx, "test", "a", obj)),
		"AdvanceAgain":    second(s.AdvanceAgain(ctx, tx, "test", obj, 1)),
	}
	if both, ok := any(s).(dedup.MarkAdvancer[Tx]); ok {
		_, _, errs["MarkAndAdvance"] = both.MarkAndAdvance(ctx, tx, "test", "a", time.Now(), obj, 1)
	}
	for what, err := range errs {
		if !errors.Is(err, dedup.ErrInvalid) || !strings.Contains(err.Error(), "the transaction is nil") {
			t.Errorf("%s of a nil transaction: %v, and not an error that matches ErrInvalid and says so", what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
