package inside_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/internal/inside"
)

// deep calls fn below n more frames.
func deep(n int, fn func() error) error {
	if n == 0 {
		return fn()
	}
	err := deep(n-1, fn)
	return err
}

func TestCalled(t *testing.T) {
	for _, m := range []inside.Mark{0, 1, 0xffff, 0x1b1b, 0xe4e4, inside.New()} {
		other := m ^ 0x0100
		require.False(t, m.Called())
		for _, depth := range []int{0, 1, 50, 63, 200} { // the stack is read in parts
			ran := 0
			require.NoError(t, m.Call(func() error {
				return deep(depth, func() error {
					ran++
					require.True(t, m.Called(), "mark %x at depth %d", m, depth)
					require.False(t, other.Called())
					elsewhere := make(chan bool)
					go func() { elsewhere <- m.Called() }()
					require.False(t, <-elsewhere, "another goroutine is not inside")
					return other.Call(func() error {
						return deep(depth, func() error {
							require.True(t, m.Called(), "mark %x around another at depth %d", m, depth)
							require.True(t, other.Called())
							require.False(t, (m ^ 0x8000).Called())
							return nil
						})
					})
				})
			}))
			require.Equal(t, 1, ran)
		}
		require.False(t, m.Called())
	}
	failed := errors.New("failed")
	require.ErrorIs(t, inside.New().Call(func() error { return failed }), failed)
}

// A call that panics is no longer on the stack.
func TestCalledAfterAPanic(t *testing.T) {
	m := inside.New()
	require.Panics(t, func() { _ = m.Call(func() error { panic("on purpose") }) })
	require.False(t, m.Called())
}

func BenchmarkCall(b *testing.B) {
	m := inside.New()
	for b.Loop() {
		_ = m.Call(func() error { return nil })
	}
}

func BenchmarkCalled(b *testing.B) {
	m := inside.New()
	_ = deep(20, func() error {
		for b.Loop() {
			m.Called()
		}
		return nil
	})
}
