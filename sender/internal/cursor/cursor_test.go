package cursor_test

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/cursor"
)

func TestLimit(t *testing.T) {
	for asked, want := range map[int]int{0: 50, 1: 1, 200: 200} {
		n, from, err := cursor.Number(asked, "", 7)
		require.NoError(t, err)
		require.Equal(t, want, n)
		require.Equal(t, int64(7), from, "first, without a cursor")
		n, key, err := cursor.Delivery(asked, "", sender.DeliveryKey{Event: 8})
		require.NoError(t, err)
		require.Equal(t, want, n)
		require.Equal(t, sender.DeliveryKey{Event: 8}, key)
	}
	for _, asked := range []int{-1, 201} {
		_, _, err := cursor.Number(asked, cursor.OfNumber(1), 0)
		require.ErrorIs(t, err, sender.ErrInvalid)
		_, _, err = cursor.Delivery(asked, "", sender.DeliveryKey{})
		require.ErrorIs(t, err, sender.ErrInvalid)
	}
}

// A list refuses cursors that were cut off, and all texts that it did not write.
func TestNoCursor(t *testing.T) {
	number, delivery := cursor.OfNumber(123456), cursor.OfDelivery(sender.DeliveryKey{Event: 12, Subscription: 345})
	wrong := func(text string) (all []string) {
		for i := 1; i < len(text); i++ {
			all = append(all, text[:i])
		}
		return append(all, text+"\n", text+"=", text+text, " "+text, "0", "null", "\x00")
	}
	for _, text := range append(wrong(number), delivery, cursor.OfNumber(0), cursor.OfNumber(-1)) {
		_, _, err := cursor.Number(0, text, 0)
		require.ErrorIs(t, err, sender.ErrInvalid, "%q", text)
	}
	for _, text := range append(wrong(delivery), number, cursor.OfDelivery(sender.DeliveryKey{Event: 1}), cursor.OfDelivery(sender.DeliveryKey{Subscription: 1})) {
		_, _, err := cursor.Delivery(0, text, sender.DeliveryKey{})
		require.ErrorIs(t, err, sender.ErrInvalid, "%q", text)
	}
}

// A cursor is read back as it was written, and has one text.
func FuzzCursor(f *testing.F) {
	for _, k := range []sender.DeliveryKey{{Event: 1, Subscription: 1}, {Event: 12, Subscription: 345}, {Event: math.MaxInt64, Subscription: math.MaxInt64}} {
		f.Add(cursor.OfDelivery(k), k.Event, k.Subscription)
		f.Add(cursor.OfNumber(k.Subscription), k.Event, k.Subscription)
	}
	for _, text := range []string{"MS4x\n", "MS4xLg\n", "KzEuMS4", "MDEuMS4", "MS4xLi4", "MS4xLjEu", "LTEu", "KzEu", "MQ"} {
		f.Add(text, int64(1), int64(2))
	}
	f.Fuzz(func(t *testing.T, raw string, event, subscription int64) {
		if _, k, err := cursor.Delivery(0, raw, sender.DeliveryKey{}); raw != "" && err == nil && cursor.OfDelivery(k) != raw {
			t.Fatalf("%q is taken for %+v, which is %q", raw, k, cursor.OfDelivery(k))
		} else if err != nil && !errors.Is(err, sender.ErrInvalid) {
			t.Fatal(err)
		}
		if _, no, err := cursor.Number(0, raw, 0); raw != "" && err == nil && cursor.OfNumber(no) != raw {
			t.Fatalf("%q is taken for %d, which is %q", raw, no, cursor.OfNumber(no))
		} else if err != nil && !errors.Is(err, sender.ErrInvalid) {
			t.Fatal(err)
		}
		if k := (sender.DeliveryKey{Event: event, Subscription: subscription}); event > 0 && subscription > 0 {
			if _, got, err := cursor.Delivery(0, cursor.OfDelivery(k), sender.DeliveryKey{}); err != nil || got != k {
				t.Fatalf("%+v comes back as %+v: %v", k, got, err)
			}
			if _, got, err := cursor.Number(0, cursor.OfNumber(event), 0); err != nil || got != event {
				t.Fatalf("%d comes back as %d: %v", event, got, err)
			}
		}
	})
}
