package console

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// However many pages count at once, the database counts for two of them.
func TestCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &Console{counting: make(chan struct{}, countsAtOnce)}
		end := make(chan struct{})
		running := 0
		count := func() error {
			running++
			<-end
			running--
			return nil
		}
		for range 10 {
			go func() {
				if err := c.counted(t.Context(), count); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		for left := 10; left > 0; left-- {
			require.Equal(t, min(2, left), running)
			end <- struct{}{}
			synctest.Wait()
		}
		gone, leave := context.WithCancel(t.Context())
		for range 2 {
			c.counting <- struct{}{}
		}
		leave()
		require.ErrorIs(t, c.counted(gone, count), context.Canceled)
	})
}
