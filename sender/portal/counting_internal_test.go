package portal

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// Of one subscriber, one count is made at a time, and of all together, two. The others wait in
// their turn, and some are refused.
func TestCounting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounting()
		end := make(chan struct{})
		var running []string
		refused := 0
		ask := func(ctx context.Context, subscriber string) {
			go func() {
				err := c.do(ctx, subscriber, func() error {
					running = append(running, subscriber) // there is no other at the same moment: see synctest.Wait
					<-end
					i := slices.Index(running, subscriber)
					running = slices.Delete(running, i, i+1)
					return nil
				})
				if err != nil {
					if !errors.As(err, new(tooMany)) {
						t.Error(err)
					}
					refused++
				}
			}()
			synctest.Wait()
		}
		for range countsOfOne + 3 {
			ask(t.Context(), "ada")
		}
		require.Equal(t, []string{"ada"}, running)
		require.Equal(t, 3, refused)
		ask(t.Context(), "bob")
		ask(t.Context(), "eve")
		require.Equal(t, []string{"ada", "bob"}, running)
		for range countsOfOne + 2 {
			end <- struct{}{}
			synctest.Wait()
			slices.Sort(running)
			require.LessOrEqual(t, len(running), 2)
			require.Len(t, slices.Compact(slices.Clone(running)), len(running), "two of one subscriber: %v", running)
		}
		require.Empty(t, c.of)
		require.Empty(t, c.all)

		// One that nobody waits for any more gives up its turn.
		left, leave := context.WithCancel(t.Context())
		ask(t.Context(), "ada")
		go func() {
			if err := c.do(left, "ada", func() error { return nil }); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}()
		synctest.Wait()
		leave()
		synctest.Wait()
		require.Equal(t, 1, c.of["ada"].n)
		end <- struct{}{}
	})
}
