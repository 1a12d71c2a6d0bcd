package console

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Pages are parsed when they are first shown, so New does not find a mistake in one.
func TestPagesCanBeParsed(t *testing.T) {
	t.Parallel()
	names, err := files.ReadDir("pages")
	require.NoError(t, err)
	for _, f := range names {
		name, _ := strings.CutSuffix(f.Name(), ".html")
		if slices.Contains([]string{"layout", "parts", "rows", "signin"}, name) {
			continue
		}
		page, err := pages(name)
		require.NoError(t, err)
		again, err := pages(name)
		require.NoError(t, err)
		require.Same(t, page, again, "it is parsed once")
	}
}
