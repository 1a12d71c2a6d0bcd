// Package fence draws the tokens of leases. A result counts under the token that the
// lease has in the database, and under no other.
package fence

import (
	"crypto/rand"
	"encoding/binary"
)

// Token returns a number above zero, of 63 bits, that was never drawn before, in any
// process. A counter in the row would not do: a failover that loses the last commits,
// or a row that is removed and made again, gives its numbers out a second time.
//
// It draws from the operating system, of which a copy of a running machine is told: a
// generator of the process's own would go on with the same numbers in both.
func Token() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return max(1, int64(binary.NativeEndian.Uint64(b[:])>>1))
}
