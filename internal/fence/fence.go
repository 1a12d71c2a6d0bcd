// Package fence draws the tokens of leases. A result counts under the token that the
// lease has in the database, and under no other.
package fence

import (
	"crypto/rand"
	"encoding/binary"
)

// Token returns a number above zero, of 63 bits, that no process has drawn before. A
// counter in the row is not enough. It gives out its numbers a second time after a
// failover that loses the last commits, or if a row is removed and made again.
//
// It draws from the operating system, which learns when a running machine is copied. A
// generator in the process would go on with the same numbers in both copies.
func Token() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return max(1, int64(binary.NativeEndian.Uint64(b[:])>>1))
}
