package storetest_test

import (
	"maps"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/storetest"
)

// breakageName names the way in which TestSuite breaks the store that it runs the
// suite on. TestSuite alone, without it, shows that the store is sound otherwise.
const breakageName = "STORETEST_BREAKAGE"

func TestSuite(t *testing.T) {
	breakStore := func(*broken, *harness) {}
	if name := os.Getenv(breakageName); name != "" {
		breakStore = allBreakages()[name].how
		require.NotNil(t, breakStore, "%s=%s", breakageName, name)
	}
	storetest.Run(t, func(t *testing.T) harness {
		var passed atomic.Int64
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		store, err := memory.New(&memory.Config{Now: func() time.Time { return start.Add(time.Duration(passed.Load())) }})
		require.NoError(t, err)
		b := &broken{Store: store}
		h := harness{
			Store:   b,
			Advance: func(d time.Duration) { passed.Add(int64(d)) },
			Begin: func(t *testing.T) (tx, func() error, func() error) {
				tx, err := store.Begin(t.Context())
				require.NoError(t, err)
				return tx, tx.Commit, tx.Rollback
			},
		}
		breakStore(b, &h)
		return h
	})
}

func allBreakages() map[string]breakage {
	all := maps.Clone(breakages)
	maps.Copy(all, lifeBreakages)
	maps.Copy(all, bodyBreakages)
	maps.Copy(all, queryBreakages)
	maps.Copy(all, retentionBreakages)
	maps.Copy(all, feedBreakages)
	maps.Copy(all, callbackBreakages)
	maps.Copy(all, spareBreakages)
	maps.Copy(all, presenceBreakages)
	maps.Copy(all, orderBreakages)
	maps.Copy(all, largeBreakages)
	maps.Copy(all, processBreakages)
	return all
}

// TestBrokenStores runs, for each way to break a store, the tests that must catch
// it, in a process of their own, since a test cannot be expected to fail.
func TestBrokenStores(t *testing.T) {
	all := allBreakages()
	require.Len(t, all, len(breakages)+len(lifeBreakages)+len(queryBreakages)+len(retentionBreakages)+len(feedBreakages)+len(callbackBreakages)+len(spareBreakages)+len(presenceBreakages)+len(bodyBreakages)+len(orderBreakages)+len(processBreakages)+len(largeBreakages), "two breakages have one name")
	for name, b := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NotEmpty(t, b.caughtBy)
			for _, test := range b.caughtBy {
				path := "TestSuite/" + strings.ReplaceAll(test, " ", "_")
				var pattern []string
				for _, part := range strings.Split(path, "/") {
					pattern = append(pattern, "^"+regexp.QuoteMeta(part)+"$")
				}
				cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+strings.Join(pattern, "/"), "-test.timeout=30s")
				cmd.Env = append(os.Environ(), breakageName+"="+name)
				out, err := cmd.CombinedOutput()
				var failed *exec.ExitError
				require.ErrorAs(t, err, &failed, "%s does not catch it:\n%s", test, out)
				require.Contains(t, string(out), "--- FAIL: "+path+" (", "%s was to catch it", test)
				require.Contains(t, string(out), "the rule: ")
				require.NotContains(t, string(out), "panic:", "%s fails for another reason", test)
			}
		})
	}
}
