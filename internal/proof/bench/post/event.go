package post

import (
	"bytes"
	"fmt"
)

// Size is the size of bodies, in bytes.
const Size = 1 << 10

// objects is the number of objects of the events.
const objects = 1000

// Event renders the event with a number as the library does: its id and its body
// of Size bytes.
func Event(n int) (id string, body []byte) { return EventOf(n, Size) }

// EventOf is Event with a body of another size.
func EventOf(n, size int) (id string, body []byte) {
	id = fmt.Sprintf("evt_%026d", n)
	head := fmt.Appendf(make([]byte, 0, size), `{"id":%q,"type":"thing.changed","occurred_at":"2026-01-02T03:04:05.678901Z","object":{"type":"thing","id":"thing_%04d"},"version":%d,"data":"`,
		id, n%objects, n+1)
	return id, append(append(head, Data(size-len(head)-len(`"}`))...), `"}`...)
}

// Data returns n bytes that JSON does not escape.
func Data(n int) []byte { return bytes.Repeat([]byte("x"), n) }
