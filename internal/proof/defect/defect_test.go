package defect_test

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/proof/defect"
)

const root = "../../.."

// Every defect still applies: its text is in the file, the changed file parses, and the tests
// that are to catch it are there.
func TestDefectsAreUpToDate(t *testing.T) {
	t.Parallel()
	all := defect.All()
	require.GreaterOrEqual(t, len(all), 30)
	names := map[string]bool{}
	for _, d := range all {
		require.False(t, names[d.Name], "two are called %q", d.Name)
		names[d.Name] = true
		changed, err := d.Apply(root)
		if err != nil {
			t.Error(err) // and all others that a change has outdated
			continue
		}
		_, err = parser.ParseFile(token.NewFileSet(), d.File, changed, 0)
		require.NoError(t, err, d.Name)
		require.NotEmpty(t, d.Tests, d.Name)
		for _, folder := range d.Tests {
			require.True(t, hasTest(t, filepath.Join(d.Module, folder), d.Run), "defect %q: no test in %s has a name that matches %q", d.Name, folder, d.Run)
		}
	}
}

var testNames = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// hasTest tells whether a package has a test that go test -run takes.
func hasTest(t *testing.T, folder, run string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*_test.go"))
	require.NoError(t, err)
	name, _, _ := strings.Cut(run, "/")
	pattern := regexp.MustCompile(name)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, found := range testNames.FindAllSubmatch(text, -1) {
			if pattern.Match(found[1]) {
				return true
			}
		}
	}
	return false
}

// The module has two functions, and a test for only one of them. Another module has one for the other.
func TestTry(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module example.com/m\n\ngo 1.26\n",
		"m.go":      "package m\n\nfunc Double(n int) int { return 2 * n }\n\nfunc Untested() int { return 1 }\n",
		"m_test.go": "package m\n\nimport \"testing\"\n\nfunc TestDouble(t *testing.T) {\n\tt.Run(\"two\", func(t *testing.T) {\n\t\tif Double(2) != 4 {\n\t\t\tt.Fatal(\"not 4\")\n\t\t}\n\t})\n}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	try := func(old, wrong string) (defect.Outcome, error) {
		return defect.Defect{Name: "d", File: "m.go", Old: old, New: wrong, Tests: []string{"."}}.Try(t.Context(), dir)
	}
	out, err := try("2 * n", "3 * n")
	require.NoError(t, err)
	require.True(t, out.Caught)
	require.Equal(t, []string{"example.com/m TestDouble/two"}, out.By)

	out, err = try("2 * n", "panicking(n)")
	require.ErrorContains(t, err, "does not compile", "it is not taken for caught")
	require.False(t, out.Caught)

	out, err = try("return 1", "return 2")
	require.NoError(t, err)
	require.False(t, out.Caught)
	require.Equal(t, "all tests passed", out.Problem)

	out, err = try("return 2 * n", "panic(n)")
	require.NoError(t, err)
	require.True(t, out.Caught)
	require.Equal(t, []string{"example.com/m TestDouble/two"}, out.By)

	out, err = try("return 2 * n", `panic("test timed out after 1s")`) // in the words of package testing
	require.NoError(t, err)
	require.True(t, out.Caught)
	require.Equal(t, []string{"example.com/m TestDouble/two, which did not end"}, out.By)

	// The test of a module beside it.
	for name, text := range map[string]string{
		"go.mod":    "module example.com/beside\n\ngo 1.26\n\nrequire example.com/m v0.0.0\n\nreplace example.com/m => ..\n",
		"b_test.go": "package beside\n\nimport (\n\t\"testing\"\n\n\t\"example.com/m\"\n)\n\nfunc TestOne(t *testing.T) {\n\tif m.Untested() != 1 {\n\t\tt.Fatal(\"not 1\")\n\t}\n}\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "beside"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "beside", name), []byte(text), 0o600))
	}
	out, err = defect.Defect{Name: "d", File: "m.go", Old: "return 1", New: "return 2", Module: "beside", Tests: []string{"."}}.Try(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, []string{"example.com/beside TestOne"}, out.By)

	_, err = try("not there", "")
	require.ErrorContains(t, err, "0 times")
	text, err := os.ReadFile(filepath.Join(dir, "m.go"))
	require.NoError(t, err)
	require.Contains(t, string(text), "2 * n", "the tree is as it was")
}
