//go:build !race

package storetest_test

import (
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"slices"
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
	breaking := func(sound store) store { return sound }
	if name := os.Getenv(breakageName); name != "" {
		all := breakages()
		i := slices.IndexFunc(all, func(b breakage) bool { return b.name == name })
		require.NotEqual(t, -1, i, "%s=%s", breakageName, name)
		breaking = all[i].breaking
		storetest.AwaitLess()
	}
	storetest.Run(t, func(t *testing.T) harness {
		var passed atomic.Int64
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		inMemory, err := memory.New(&memory.Config{Now: func() time.Time { return start.Add(time.Duration(passed.Load())) }})
		require.NoError(t, err)
		s := breaking(inMemory)
		return harness{
			Store:   s,
			Advance: func(d time.Duration) { passed.Add(int64(d)) },
			Begin: func(t *testing.T) (tx, func() error, func() error) {
				tx, err := inMemory.Begin(t.Context())
				require.NoError(t, err)
				if other, ok := s.(rollsBack); ok {
					return tx, tx.Commit, func() error { return other.rollBack(tx) }
				}
				return tx, tx.Commit, tx.Rollback
			},
		}
	})
}

func breakages() []breakage {
	return slices.Concat(publishBreakages, transactionBreakages, registryBreakages, secretsBreakages, callbackBreakages,
		largeBreakages, claimBreakages, bodyBreakages, keptBodyBreakages, orderBreakages, lineBreakages, processBreakages, recordBreakages, spareBreakages,
		lifeBreakages, redeliverBreakages, replayBreakages, presenceBreakages, queryBreakages, feedBreakages,
		retentionBreakages, noticeBreakages)
}

// Everybody who has a store of their own writes each method of the contract.
func TestContractHasNotGrown(t *testing.T) {
	require.Equal(t, 61, reflect.TypeFor[store]().NumMethod(), "the methods of storetest.Store: is the new one needed? CHANGELOG names it if it is")
}

// TestBrokenStores runs, for each way to break a store, the checks that must bite, in a
// process of its own, since a test cannot be expected to fail.
func TestBrokenStores(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range breakages() {
		require.False(t, seen[b.name], "two breakages have the name %q", b.name)
		seen[b.name] = true
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			require.NotEmpty(t, b.bite)
			var patterns, paths []string
			for _, check := range b.bite {
				path := "TestSuite/" + strings.ReplaceAll(check, " ", "_")
				var parts []string
				for _, part := range strings.Split(path, "/") {
					parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
				}
				patterns, paths = append(patterns, strings.Join(parts, "/")), append(paths, path)
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+strings.Join(patterns, "|"), "-test.timeout=1m")
			cmd.Env = append(os.Environ(), breakageName+"="+b.name)
			out, err := cmd.CombinedOutput()
			var failed *exec.ExitError
			require.ErrorAs(t, err, &failed, "%q do not catch it:\n%s", b.bite, out)
			for _, path := range paths {
				require.Contains(t, string(out), "--- FAIL: "+path+" (", "it was to catch it")
			}
			require.Contains(t, string(out), "the rule: ")
			require.NotContains(t, string(out), "panic:", "it fails for another reason")
		})
	}
}
