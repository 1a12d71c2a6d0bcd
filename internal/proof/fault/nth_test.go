package fault_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/race"
)

// every returns some of the numbers from 1 to n, because there is no time for all of them.
// The next run gets others. With SUREHOOK_EVERY=1 it returns all.
func every(t *testing.T, n int64) (all []int64) {
	t.Helper()
	step := int64(50)
	if race.Enabled { // each flow runs all of the code, and without the detector more calls fail
		step = min(400, n)
	}
	if text := os.Getenv("SUREHOOK_EVERY"); text != "" {
		_, err := fmt.Sscan(text, &step)
		require.NoError(t, err, "SUREHOOK_EVERY")
	}
	for i := 1 + rand.Int64N(step); i <= n; i += step {
		all = append(all, i)
	}
	return all
}

// Each call to the database fails once, in each mode. No acknowledged event is lost, no
// event that was rolled back is sent, and each event ends with one effect.
func TestEveryCallFails(t *testing.T) {
	t.Parallel()
	for name, newBed := range beds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			count := &fault{}
			if only := os.Getenv("SUREHOOK_FAULT"); only != "" { // "212 after its effect"
				n, how, _ := strings.Cut(only, " ")
				_, err := fmt.Sscan(n, &count.n)
				require.NoError(t, err)
				count.mode = mode(how)
			}
			newBed(t).flow(t, count)
			if count.n > 0 {
				return
			}
			calls := count.calls.Load()
			t.Logf("%d calls", calls)
			require.NotZero(t, calls)
			type one struct {
				n    int64
				mode mode
			}
			work, numbers := make(chan one), every(t, calls)
			t.Run("nth", func(t *testing.T) {
				for worker := range workers(name) {
					t.Run(fmt.Sprint(worker), func(t *testing.T) {
						t.Parallel()
						b := newBed(t)
						for f := range work {
							if !t.Failed() && !t.Run(fmt.Sprintf("%d %s", f.n, f.mode), func(t *testing.T) { b.flow(t, &fault{n: f.n, mode: f.mode}) }) {
								break
							}
						}
						for range work { // so that the writer does not block
						}
					})
				}
				go func() {
					defer close(work)
					for _, n := range numbers {
						for _, m := range modes {
							work <- one{n, m}
						}
					}
				}()
			})
		})
	}
}
