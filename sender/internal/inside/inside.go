// Package inside finds out whether a function is called inside another one, on the same
// goroutine: then it must not wait for the other one's end.
//
// Go does not say which goroutine runs, and a context is not handed on to every function. But
// a goroutine can read its own stack. So a Mark writes its number there, as calls of four
// functions that stand for the digits. That costs a call some nanoseconds, and a look some
// microseconds; a goroutine's id, from runtime.Stack, would cost each call more than a look.
package inside

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"

	"github.com/surehook/surehook/sender"
)

// ErrInTx refuses a call inside the function of a store's InTx.
var ErrInTx = fmt.Errorf("%w call: it is made inside the function of InTx, whose end it would wait for: use PublishTx with the transaction that you have, or the method whose name ends in Tx", sender.ErrInvalid)

// Mark is the number of whoever makes calls that must not be made inside each other.
type Mark uint16

// digits is how many digits of two bits a Mark has.
const digits = 8

// New returns a random Mark.
func New() Mark { return Mark(rand.Uint32()) }

// Call calls fn. While fn runs, Called is true on its goroutine.
func (m Mark) Call(fn func() error) error { return m.rest(digits, fn) }

// rest writes the digits that are left, the lowest first.
func (m Mark) rest(left int, fn func() error) error {
	if left == 0 {
		return fn()
	}
	switch m & 3 {
	case 0:
		return (m >> 2).zero(left-1, fn)
	case 1:
		return (m >> 2).one(left-1, fn)
	case 2:
		return (m >> 2).two(left-1, fn)
	}
	return (m >> 2).three(left-1, fn)
}

//go:noinline
func (m Mark) zero(left int, fn func() error) error { return m.rest(left, fn) }

//go:noinline
func (m Mark) one(left int, fn func() error) error { return m.rest(left, fn) }

//go:noinline
func (m Mark) two(left int, fn func() error) error { return m.rest(left, fn) }

//go:noinline
func (m Mark) three(left int, fn func() error) error { return m.rest(left, fn) }

// Called tells whether it is called inside a Call of the same Mark. It cannot see a Call of
// another goroutine, even of one that waits for this one.
func (m Mark) Called() bool {
	var read Mark
	found := 0
	pcs := make([]uintptr, 64)
	for skip := 2; ; skip += len(pcs) {
		n := runtime.Callers(skip, pcs)
		frames := runtime.CallersFrames(pcs[:n])
		for more := n > 0; more; {
			var f runtime.Frame
			f, more = frames.Next()
			digit, ok := digitOf(f.Function)
			if !ok {
				continue
			}
			read, found = read<<2|digit, found+1
			if found%digits == 0 && read == m {
				return true
			}
		}
		if n < len(pcs) {
			return false
		}
	}
}

// digitOf returns the digit for which a function stands.
func digitOf(function string) (Mark, bool) {
	_, name, ok := strings.Cut(function, "/sender/internal/inside.Mark.")
	if !ok {
		return 0, false
	}
	switch name {
	case "zero":
		return 0, true
	case "one":
		return 1, true
	case "two":
		return 2, true
	case "three":
		return 3, true
	}
	return 0, false
}
