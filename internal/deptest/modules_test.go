package deptest_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// Go raises an importer of a module to the versions that the module names. So the root
// names few modules, and engines in the oldest versions that work: a service chooses
// its own.
func TestRequirements(t *testing.T) {
	text, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	direct := map[string]string{}
	for _, line := range regexp.MustCompile(`(?m)^\t(\S+) (v\S+)$`).FindAllStringSubmatch(string(text), -1) {
		direct[line[1]] = line[2]
	}
	need := map[string]string{"modernc.org/libc": "v1.55.3", "modernc.org/sqlite": "v1.34.0", "pgregory.net/rapid": "v1.1.0", "github.com/anishathalye/porcupine": "v1.0.0"}
	for _, own := range []string{"github.com/google/go-cmp", "github.com/jackc/pgx/v5", "github.com/stretchr/testify", "golang.org/x/sync"} {
		require.Contains(t, direct, own)
		need[own] = direct[own]
	}
	require.Equal(t, need, direct)
}
