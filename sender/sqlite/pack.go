package sqlite

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/surehook/surehook/sender"
)

// Packed rows hold unsigned varints (encoding/binary) and bytes with their length
// before them.

var errPacked = errors.New("a packed row is not in a format that this version knows")

// unpacker reads a packed row. After its end, or what is not a varint, it is bad
// and returns zeros.
type unpacker struct {
	b   []byte
	bad bool
}

func (u *unpacker) uint() uint64 {
	n, size := binary.Uvarint(u.b)
	if size <= 0 {
		u.b, u.bad = nil, true
		return 0
	}
	u.b = u.b[size:]
	return n
}

func (u *unpacker) int() int64 { return int64(u.uint()) }

// bytes are those of the row, not copies.
func (u *unpacker) bytes() []byte {
	n := u.uint()
	if n > uint64(len(u.b)) {
		u.b, u.bad = nil, true
		return nil
	}
	b := u.b[:n:n]
	u.b = u.b[n:]
	return b
}

func (u *unpacker) err() error {
	if u.bad {
		return errPacked
	}
	return nil
}

func packInt(b []byte, n int64) []byte { return binary.AppendUvarint(b, uint64(n)) }

func packBytes[T ~string | ~[]byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// queued is an event in a queue. One that was sent again before its first claim
// has left its place: it stands among those that wait.
type queued struct {
	event int64
	left  bool
}

// packEvents packs an ascending list: of each event twice its distance from the
// one before, and one more if it left its place.
func packEvents(events []queued) []byte {
	b := make([]byte, 0, 8+2*len(events))
	last := int64(0)
	for _, q := range events {
		n := (q.event - last) << 1
		if q.left {
			n |= 1
		}
		b = packInt(b, n)
		last = q.event
	}
	return b
}

// unpackEvents appends those after an event.
func unpackEvents(to []queued, b []byte, after int64) ([]queued, error) {
	u := unpacker{b: b}
	for event := int64(0); len(u.b) > 0; {
		n := u.int()
		if event += n >> 1; event > after {
			to = append(to, queued{event, n&1 == 1})
		}
	}
	return to, u.err()
}

// packDeliveries packs deliveries in the order of their events, then of their
// subscriptions: for each event its distance from the one before, how many
// subscriptions follow, and these likewise.
func packDeliveries(keys []sender.DeliveryKey) []byte {
	var b []byte
	event := int64(0)
	for len(keys) > 0 {
		n := slices.IndexFunc(keys, func(k sender.DeliveryKey) bool { return k.Event != keys[0].Event })
		if n < 0 {
			n = len(keys)
		}
		b = packInt(packInt(b, keys[0].Event-event), int64(n))
		event = keys[0].Event
		last := int64(0)
		for _, k := range keys[:n] {
			b = packInt(b, k.Subscription-last)
			last = k.Subscription
		}
		keys = keys[n:]
	}
	return b
}

func unpackDeliveries(b []byte) (keys []sender.DeliveryKey, err error) {
	u := unpacker{b: b}
	for event := int64(0); len(u.b) > 0; {
		event += u.int()
		subscription := int64(0)
		for n := u.uint(); n > 0 && !u.bad; n-- {
			subscription += u.int()
			keys = append(keys, sender.DeliveryKey{Event: event, Subscription: subscription})
		}
	}
	return keys, u.err()
}
