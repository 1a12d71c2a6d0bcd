package inside_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/internal/inside"
)

func TestCalled(t *testing.T) {
	var calls, others inside.Calls
	for range 100 { // each with another number
		ran := false
		require.False(t, calls.Called())
		require.NoError(t, calls.Call(func() error {
			ran = true
			require.True(t, calls.Called())
			require.False(t, others.Called())
			elsewhere := make(chan bool)
			go func() { elsewhere <- calls.Called() }()
			require.False(t, <-elsewhere, "another goroutine is not inside")
			return others.Call(func() error {
				require.True(t, calls.Called())
				require.True(t, others.Called())
				return nil
			})
		}))
		require.True(t, ran)
		require.False(t, calls.Called())
	}
	failed := errors.New("failed")
	require.ErrorIs(t, calls.Call(func() error { return failed }), failed)
	require.False(t, calls.Called())
}

// A call that panics, or ends its goroutine, has ended for those who run deferred functions
// around it, though its frames are still on the stack. By then another goroutine's call may be
// under way.
func TestCalledWhileTheStackUnwinds(t *testing.T) {
	for name, end := range map[string]func(){
		"panic":  func() { panic("on purpose") },
		"goexit": runtime.Goexit,
	} {
		var calls inside.Calls
		within, around := make(chan bool, 1), make(chan bool, 1)
		go func() {
			defer func() {
				_ = recover()
				begun, over := make(chan struct{}), make(chan struct{})
				go func() { _ = calls.Call(func() error { close(begun); <-over; return nil }) }()
				<-begun
				around <- calls.Called()
				close(over)
			}()
			_ = calls.Call(func() error {
				defer func() { within <- calls.Called() }()
				end()
				return nil
			})
		}()
		require.True(t, <-within, "%s: it is still inside", name)
		require.False(t, <-around, "%s: it is outside", name)
	}
}

func BenchmarkCall(b *testing.B) {
	var calls inside.Calls
	for b.Loop() {
		_ = calls.Call(func() error { return nil })
	}
}

func BenchmarkCalled(b *testing.B) {
	var calls inside.Calls
	_ = calls.Call(func() error {
		for b.Loop() {
			calls.Called()
		}
		return nil
	})
}
