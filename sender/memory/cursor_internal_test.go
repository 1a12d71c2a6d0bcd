package memory

import (
	"errors"
	"math"
	"testing"

	"github.com/surehook/surehook/sender"
)

// A page's cursor is read back as what it stands for, and has one text: what no page
// came with is refused.
func FuzzHistoryCursor(f *testing.F) {
	for _, k := range []sender.DeliveryKey{{Event: 1, Subscription: 1}, {Event: 12, Subscription: 345}, {Event: math.MaxInt64, Subscription: math.MaxInt64}} {
		f.Add(cursor(k), k.Event, k.Subscription)
	}
	f.Add("MS4x\n", int64(1), int64(2))
	f.Add("KzEuMQ", int64(-1), int64(0))
	f.Fuzz(func(t *testing.T, raw string, event, subscription int64) {
		if k, err := parseCursor(raw); raw != "" && err == nil && cursor(k) != raw {
			t.Fatalf("%q is taken for %+v, which is %q", raw, k, cursor(k))
		} else if err != nil && !errors.Is(err, sender.ErrInvalid) {
			t.Fatal(err)
		}
		if k := (sender.DeliveryKey{Event: event, Subscription: subscription}); event > 0 && subscription > 0 {
			if got, err := parseCursor(cursor(k)); err != nil || got != k {
				t.Fatalf("%+v comes back as %+v: %v", k, got, err)
			}
		}
	})
}
