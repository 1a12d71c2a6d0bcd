package jsonschema

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/surehook/surehook/sender"
)

// A mode is a sender.PublisherConfig.Check, and a surehook.SenderConfig.PublishCheck.

// Always returns a check that refuses each publish that is wrong, with an *Error.
func (k *Checker) Always() func(ctx context.Context, p sender.Payload) error {
	return func(_ context.Context, p sender.Payload) error { return k.Check(p.Type, p.Version, p.Data) }
}

// Sampled returns a check of a share of all publishes, from above 0 to 1, chosen at random.
// It refuses none, since one that is refused at random is of no use to its caller. It calls
// report, on the publisher's goroutine, with what is wrong: to log it, or to count it.
func (k *Checker) Sampled(share float64, report func(ctx context.Context, err *Error)) (func(ctx context.Context, p sender.Payload) error, error) {
	if !(share > 0 && share <= 1) {
		return nil, fmt.Errorf("sender/catalogue/jsonschema: Sampled: the share is %v: it must be above 0 and at most 1", share)
	}
	if report == nil {
		return nil, errors.New("sender/catalogue/jsonschema: Sampled needs a function that gets what is wrong")
	}
	return func(ctx context.Context, p sender.Payload) error {
		var wrong *Error
		if rand.Float64() < share && errors.As(k.Check(p.Type, p.Version, p.Data), &wrong) {
			report(ctx, wrong)
		}
		return nil
	}, nil
}

// T is a *testing.T.
type T interface {
	Helper()
	Errorf(format string, args ...any)
}

// InTest returns a check that refuses as Always does, and makes the test fail besides: an
// application may swallow the error of a publish, or expect one.
func (k *Checker) InTest(t T) func(ctx context.Context, p sender.Payload) error {
	return func(_ context.Context, p sender.Payload) error {
		t.Helper()
		err := k.Check(p.Type, p.Version, p.Data)
		if err != nil {
			t.Errorf("this publish does not fit the catalogue: %v", err)
		}
		return err
	}
}
