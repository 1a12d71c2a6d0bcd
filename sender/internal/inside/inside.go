// Package inside finds out whether a function is called inside another one, on the same
// goroutine: then it must not wait for the other one's end.
//
// Go does not say which goroutine runs, and a context is not handed on to every function. But
// a goroutine can read its own stack. So a call writes its number there, as calls of four
// functions that stand for the digits. That costs a call some nanoseconds, and a look some
// microseconds; a goroutine's id, from runtime.Stack, would cost each call more than a look.
package inside

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/surehook/surehook/sender"
)

// ErrInTx refuses a call inside the function of a store's InTx.
var ErrInTx = fmt.Errorf("%w call: it is made inside the function of InTx, whose end it would wait for: use PublishTx with the transaction that you have, or the method whose name ends in Tx", sender.ErrInvalid)

// Calls are calls that are under way one at a time, and that must not be made inside each
// other. The zero value is ready. It is safe for concurrent use.
type Calls struct {
	underWay atomic.Uint32 // the number of the call, and begun; 0: none is
}

const begun = 1 << 16

// Call calls fn. While fn runs, Called is true on its goroutine. No other Call may be under
// way.
func (c *Calls) Call(fn func() error) error {
	n := number(rand.Uint32()) // it differs from those of other Calls, and of calls that a panic has left on the stack
	c.underWay.Store(begun | uint32(n))
	defer c.underWay.Store(0)
	return n.rest(digits, fn)
}

// Called tells whether it is called inside the call that is under way. It cannot see that it
// is if another goroutine makes the call, even one that waits for this one.
func (c *Calls) Called() bool {
	n := c.underWay.Load()
	return n != 0 && number(n).onStack()
}

// number is a call's.
type number uint16

// digits is how many digits of two bits a number has.
const digits = 8

// rest writes the digits that are left, the lowest first.
func (n number) rest(left int, fn func() error) error {
	if left == 0 {
		return fn()
	}
	switch n & 3 {
	case 0:
		return (n >> 2).zero(left-1, fn)
	case 1:
		return (n >> 2).one(left-1, fn)
	case 2:
		return (n >> 2).two(left-1, fn)
	}
	return (n >> 2).three(left-1, fn)
}

//go:noinline
func (n number) zero(left int, fn func() error) error { return n.rest(left, fn) }

//go:noinline
func (n number) one(left int, fn func() error) error { return n.rest(left, fn) }

//go:noinline
func (n number) two(left int, fn func() error) error { return n.rest(left, fn) }

//go:noinline
func (n number) three(left int, fn func() error) error { return n.rest(left, fn) }

// onStack tells whether a call with the number is on the stack of this goroutine. While a
// panic unwinds the stack, that may be one that has ended.
func (n number) onStack() bool {
	var read number
	found := 0
	pcs := make([]uintptr, 64)
	for skip := 2; ; skip += len(pcs) {
		got := runtime.Callers(skip, pcs)
		frames := runtime.CallersFrames(pcs[:got])
		for more := got > 0; more; {
			var f runtime.Frame
			f, more = frames.Next()
			digit, ok := digitOf(f.Function)
			if !ok {
				continue
			}
			read, found = read<<2|digit, found+1
			if found%digits == 0 && read == n {
				return true
			}
		}
		if got < len(pcs) {
			return false
		}
	}
}

// digitOf returns the digit for which a function stands.
func digitOf(function string) (number, bool) {
	_, name, ok := strings.Cut(function, "/sender/internal/inside.number.")
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
