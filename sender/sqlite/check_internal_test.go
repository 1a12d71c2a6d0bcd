package sqlite

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckLooksForEachMigration(t *testing.T) {
	files, err := fs.Glob(Migrations(), "*.sql")
	require.NoError(t, err)
	require.Len(t, migrated, len(files), "%v", files)
}
