//go:build unix

package main_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The SQLite file holds bodies, names and callback URLs. So it and the files that SQLite
// puts beside it are their owner's alone while the program runs, under whatever umask, and
// also if they were not before.
func TestDatabaseFilesAreTheirOwnersAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	files := []string{path, path + "-wal", path + "-shm"}
	modes := func() (all []os.FileMode) {
		for _, file := range files {
			info, err := os.Stat(file)
			require.NoError(t, err)
			all = append(all, info.Mode().Perm())
		}
		return all
	}
	begin := func(umask string) *process {
		t.Helper()
		return launchCommand(t, exec.Command("sh", "-c", "umask "+umask+` && exec "$0" "$@"`, binary,
			"-addr", "127.0.0.1:0", "-database", path, "-operator-token", operatorToken, "-secret-key", sealingKey))
	}
	alone := []os.FileMode{0o600, 0o600, 0o600}

	s := begin("0")
	made := s.customer("c")
	require.Equal(t, alone, modes())
	require.NotContains(t, s.logged(), "level=WARN")
	s.kill() // which leaves all three
	for i, wide := range []os.FileMode{0o644, 0o664, 0o666} {
		require.NoError(t, os.Chmod(files[i], wide))
	}

	// Through a link, which is followed.
	link := filepath.Join(t.TempDir(), "link.db")
	require.NoError(t, os.Symlink(path, link))
	path = link
	s = begin("0")
	require.Equal(t, alone, modes())
	require.Contains(t, s.logged(), "could be read by others")
	s.get(made.token, "/subscribers/"+made.id).is(http.StatusOK)
	s.kill()

	// A first start under a umask that forbids even its owner to read.
	path = filepath.Join(t.TempDir(), "other.db")
	files = []string{path, path + "-wal", path + "-shm"}
	s = begin("777")
	s.customer("c")
	require.Equal(t, alone, modes())
	s.stop()
	require.NoError(t, s.err)
}
