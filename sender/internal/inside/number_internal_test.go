package inside

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// deep calls fn below n more frames.
func deep(n int, fn func() error) error {
	if n == 0 {
		return fn()
	}
	err := deep(n-1, fn)
	return err
}

func TestOnStack(t *testing.T) {
	for _, n := range []number{0, 1, 0xffff, 0x1b1b, 0xe4e4} {
		other := n ^ 0x0100
		require.False(t, n.onStack())
		for _, depth := range []int{0, 1, 50, 63, 200} { // the stack is read in parts
			ran := 0
			require.NoError(t, n.rest(digits, func() error {
				return deep(depth, func() error {
					ran++
					require.True(t, n.onStack(), "number %x at depth %d", n, depth)
					require.False(t, other.onStack())
					return other.rest(digits, func() error {
						return deep(depth, func() error {
							require.True(t, n.onStack(), "number %x around another at depth %d", n, depth)
							require.True(t, other.onStack())
							require.False(t, (n ^ 0x8000).onStack())
							return nil
						})
					})
				})
			}))
			require.Equal(t, 1, ran)
		}
		require.False(t, n.onStack())
	}
}
