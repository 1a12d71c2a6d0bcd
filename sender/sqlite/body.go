package sqlite

import "bytes"

// bodiesAtOnce is the size in bytes of one allocation for bodies. It bounds the memory
// that an attempt which takes long keeps besides its own body.
const bodiesAtOnce = 16 << 10

// bodies holds the bodies of events. Each is kept once, however many deliveries share it.
type bodies struct {
	of     map[int64][]byte
	buffer []byte // for copies: an allocation for each would cost more than the copy
}

// keep copies an event's body, unless it is there, and returns it; nil if it is empty.
func (b *bodies) keep(event int64, body []byte) []byte {
	if len(body) == 0 {
		return nil
	}
	kept := b.of[event]
	if kept == nil {
		kept = b.copyOf(body)
		b.of[event] = kept
	}
	return kept
}

func (b *bodies) copyOf(body []byte) []byte {
	if len(body) > bodiesAtOnce/4 {
		return bytes.Clone(body)
	}
	if len(body) > len(b.buffer) {
		b.buffer = make([]byte, bodiesAtOnce)
	}
	n := copy(b.buffer, body)
	kept := b.buffer[:n:n]
	b.buffer = b.buffer[n:]
	return kept
}
