package portal

import (
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Pages are parsed when they are first shown, so New does not find a mistake in one.
func TestPagesCanBeParsed(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(files, "pages/*.html")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		_, err := pages(strings.TrimSuffix(path.Base(name), ".html"))
		require.NoError(t, err)
	}
}
