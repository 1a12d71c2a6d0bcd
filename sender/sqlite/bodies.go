package sqlite

import "bytes"

// bodiesAtOnce is how many bytes are allocated for bodies at a time. It bounds what an
// attempt that takes long can keep in memory besides its own.
const bodiesAtOnce = 16 << 10

// bodies is room for copies of bodies: an allocation for each would cost more than the
// copy.
type bodies []byte

func (room *bodies) copyOf(body []byte) []byte {
	if len(body) > bodiesAtOnce/4 {
		return bytes.Clone(body)
	}
	if len(body) > len(*room) {
		*room = make([]byte, bodiesAtOnce)
	}
	n := copy(*room, body)
	kept := (*room)[:n:n]
	*room = (*room)[n:]
	return kept
}
