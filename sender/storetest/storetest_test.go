package storetest_test

import (
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

// breakage names the way in which TestSuite breaks the store that it runs the
// suite on. TestSuite alone, without it, shows that the store is sound otherwise.
const breakage = "STORETEST_BREAKAGE"

func TestSuite(t *testing.T) {
	breakStore := func(*broken, *harness) {}
	if name := os.Getenv(breakage); name != "" {
		breakStore = breakages[name].how
		require.NotNil(t, breakStore, "%s=%s", breakage, name)
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

// TestBrokenStores runs, for each way to break a store, the tests that must catch
// it, in a process of their own, since a test cannot be expected to fail.
func TestBrokenStores(t *testing.T) {
	require.GreaterOrEqual(t, len(breakages), 30)
	for name, b := range breakages {
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
				cmd.Env = append(os.Environ(), breakage+"="+name)
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
