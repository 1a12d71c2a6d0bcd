package rules_test

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/rules"
)

func TestLimit(t *testing.T) {
	for asked, want := range map[int]int{0: 50, 1: 1, 200: 200} {
		n, from, err := rules.Number(asked, "", 7)
		require.NoError(t, err)
		require.Equal(t, want, n)
		require.Equal(t, int64(7), from, "first, without a cursor")
		n, key, err := rules.Delivery(asked, "", dispatch.DeliveryKey{Event: 8})
		require.NoError(t, err)
		require.Equal(t, want, n)
		require.Equal(t, dispatch.DeliveryKey{Event: 8}, key)
		n, since, no, err := rules.Failing(asked, "")
		require.NoError(t, err)
		require.Equal(t, want, n)
		require.Equal(t, []int64{0, 0}, []int64{since, no})
		_, since, no, err = rules.Failing(asked, rules.FailingCursor(1, 1))
		require.NoError(t, err)
		require.Equal(t, []int64{1, 1}, []int64{since, no})
	}
	for _, asked := range []int{-1, 201} {
		_, _, err := rules.Number(asked, rules.NumberCursor(1), 0)
		require.ErrorIs(t, err, sender.ErrInvalid)
		_, _, err = rules.Delivery(asked, rules.DeliveryCursor(dispatch.DeliveryKey{Event: 1, Subscription: 1}), dispatch.DeliveryKey{})
		require.ErrorIs(t, err, sender.ErrInvalid)
		_, _, _, err = rules.Failing(asked, rules.FailingCursor(1, 1))
		require.ErrorIs(t, err, sender.ErrInvalid)
	}
}

// A list refuses cursors that were cut off, and all texts that it did not write.
func TestNoCursor(t *testing.T) {
	number, delivery := rules.NumberCursor(123456), rules.DeliveryCursor(dispatch.DeliveryKey{Event: 12, Subscription: 345})
	whole := rules.NumberCursor(12345) // ends with a whole group of base64, so what precedes a wrong byte is all of it
	wrong := func(text string) (all []string) {
		for i := 1; i < len(text); i++ {
			all = append(all, text[:i])
		}
		return append(all, text+"\n", text+"=", text+text, " "+text, "0", "null", "\x00")
	}
	for _, text := range append(append(wrong(number), wrong(whole)...), delivery, rules.NumberCursor(0), rules.NumberCursor(-1)) {
		_, _, err := rules.Number(0, text, 0)
		require.ErrorIs(t, err, sender.ErrInvalid, "%q", text)
	}
	for _, text := range append(wrong(delivery), number, rules.DeliveryCursor(dispatch.DeliveryKey{Event: 1}), rules.DeliveryCursor(dispatch.DeliveryKey{Subscription: 1})) {
		_, _, err := rules.Delivery(0, text, dispatch.DeliveryKey{})
		require.ErrorIs(t, err, sender.ErrInvalid, "%q", text)
		_, _, _, err = rules.Failing(0, text)
		require.ErrorIs(t, err, sender.ErrInvalid, "%q", text)
	}
}

// A cursor is read back as it was written, and has one text.
func FuzzCursor(f *testing.F) {
	for _, k := range []dispatch.DeliveryKey{{Event: 1, Subscription: 1}, {Event: 12, Subscription: 345}, {Event: math.MaxInt64, Subscription: math.MaxInt64}} {
		f.Add(rules.DeliveryCursor(k), k.Event, k.Subscription)
		f.Add(rules.NumberCursor(k.Subscription), k.Event, k.Subscription)
	}
	for _, text := range []string{"MS4x\n", "MS4xLg\n", "KzEuMS4", "MDEuMS4", "MS4xLi4", "MS4xLjEu", "LTEu", "KzEu", "MQ"} {
		f.Add(text, int64(1), int64(2))
	}
	f.Fuzz(func(t *testing.T, raw string, event, subscription int64) {
		if _, k, err := rules.Delivery(0, raw, dispatch.DeliveryKey{}); raw != "" && err == nil && rules.DeliveryCursor(k) != raw {
			t.Fatalf("%q is taken for %+v, which is %q", raw, k, rules.DeliveryCursor(k))
		} else if err != nil && !errors.Is(err, sender.ErrInvalid) {
			t.Fatal(err)
		}
		if _, no, err := rules.Number(0, raw, 0); raw != "" && err == nil && rules.NumberCursor(no) != raw {
			t.Fatalf("%q is taken for %d, which is %q", raw, no, rules.NumberCursor(no))
		} else if err != nil && !errors.Is(err, sender.ErrInvalid) {
			t.Fatal(err)
		}
		if k := (dispatch.DeliveryKey{Event: event, Subscription: subscription}); event > 0 && subscription > 0 {
			if _, got, err := rules.Delivery(0, rules.DeliveryCursor(k), dispatch.DeliveryKey{}); err != nil || got != k {
				t.Fatalf("%+v comes back as %+v: %v", k, got, err)
			}
			if _, got, err := rules.Number(0, rules.NumberCursor(event), 0); err != nil || got != event {
				t.Fatalf("%d comes back as %d: %v", event, got, err)
			}
		}
	})
}
