package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const library = "github.com/surehook/surehook"

// readers is a module as a reader has it: in a folder of its own, it requires the library.
// Its other requirements are those of the examples, which have been compiled for their
// tests.
func readers(t *testing.T, files map[string]string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	absolute, err := filepath.Abs(root)
	require.NoError(t, err)
	mod, err := os.ReadFile(filepath.Join(root, "examples", "go.mod"))
	require.NoError(t, err)
	require.Contains(t, string(mod), "module "+library+"/examples\n")
	require.Contains(t, string(mod), "replace "+library+" => ..\n")
	sum, err := os.ReadFile(filepath.Join(root, "examples", "go.sum"))
	require.NoError(t, err)
	all := map[string]string{
		"go.mod": strings.NewReplacer("module "+library+"/examples\n", "module example.com/webhooks\n", "=> ..\n", "=> "+absolute+"\n", "=> ../", "=> "+absolute+"/").Replace(string(mod)),
		"go.sum": string(sum),
	}
	for name, text := range files {
		all[name] = text
	}
	for name, text := range all {
		file := filepath.Join(folder, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	return folder
}

// goTool runs a Go command in the reader's module.
func goTool(t *testing.T, folder string, args ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "go", args...)
	c.Dir, c.Env = folder, asReader()
	out, err := c.CombinedOutput()
	require.NoError(t, err, string(out))
}

// asReader is the environment of commands in the reader's module.
func asReader() []string {
	return append(os.Environ(), "GOWORK=off", "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -mod=mod"))
}
