package docs_test

import (
	"fmt"
	"go/ast"
	godoc "go/doc/comment"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// commented are the folders whose doc comments TestComments reads. Modules of their own
// below them are left out.
var commented = []string{"backoff", "dedup", "receiver", "sender", "signing"}

// imported are the packages that the code in comments uses by a name that several have: by
// the folder of the comment, and else by "".
var imported = map[string]map[string]string{
	"":                 {"sqlite": "dedup/sqlite", "postgres": "sender/postgres"},
	"receiver/inbox":   {"sqlite": "receiver/inbox/sqlite"},
	"receiver/catchup": {"sqlite": "receiver/catchup/sqlite"},
}

// forgiven are the errors of the compiler about what a comment leaves to its reader: names
// of the reader's own, and the use of what it makes.
var forgiven = regexp.MustCompile(`undefined: \w+$|declared and not used: \w+$|is not used$|label \w+ declared and not used$|missing return$`)

// The Go code in the doc comments calls functions that there are, with as many arguments
// as they take, and sets fields that there are.
func TestComments(t *testing.T) {
	named := packages(t)
	files := map[string]string{}
	for _, folder := range folders(t) {
		for file, blocks := range commentsOf(t, folder) {
			for i, code := range blocks {
				if source, ok := asProgram(folder, code, named); ok {
					files[fmt.Sprintf("%s_%d/block.go", strings.NewReplacer("/", "_", ".go", "").Replace(file), i)] = source
				}
			}
		}
	}
	require.Greater(t, len(files), 15, "most packages show how they are used")
	set := token.NewFileSet()
	patterns := []string{"."}
	for _, top := range commented {
		patterns = append(patterns, "./"+top+"/...")
	}
	imports := importer.ForCompiler(set, "gc", exports(t, root, nil, patterns...)) // one for all: it remembers what it has read
	for name, text := range files {
		file, err := parser.ParseFile(set, name, text, 0)
		require.NoError(t, err)
		checker := types.Config{Importer: imports, Error: func(err error) {
			found := err.(types.Error) //nolint:errorlint // it is always one
			first, _, _ := strings.Cut(found.Msg, "\n")
			explains := strings.HasPrefix(first, "\t") // the error before it
			if !explains && !forgiven.MatchString(first) {
				t.Error(err)
			}
		}}
		_, _ = checker.Check(name, set, []*ast.File{file}, nil) // it fails, for what is forgiven
	}
}

// exports opens what the compiler knows of packages, and of all that they import, from
// go list in a folder.
func exports(t *testing.T, folder string, env []string, packages ...string) importer.Lookup {
	t.Helper()
	c := exec.CommandContext(t.Context(), "go", append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}, packages...)...)
	c.Dir, c.Env = folder, env
	out, err := c.Output()
	require.NoError(t, err)
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[name] = file
	}
	return func(name string) (io.ReadCloser, error) { return os.Open(files[name]) }
}

// folders are those with packages that users import.
func folders(t *testing.T) (all []string) {
	t.Helper()
	for _, top := range commented {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, top), func(name string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil || d.Name() == "internal" || d.Name() == "testdata" {
				return fs.SkipDir
			}
			folder, err := filepath.Rel(root, name)
			all = append(all, filepath.ToSlash(folder))
			return err
		}))
	}
	return all
}

// packages are the import paths of all packages, by their names. A name that several have
// is left out.
func packages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{
		"surehook": library, "http": "net/http", "json": "encoding/json", "sql": "database/sql", "context": "context", "testing": "testing",
		"pgx": "github.com/jackc/pgx/v5", "require": "github.com/stretchr/testify/require",
	}
	for _, folder := range folders(t) {
		name := path.Base(folder)
		if _, twice := all[name]; twice {
			all[name] = ""
			continue
		}
		all[name] = library + "/" + folder
	}
	return all
}

// commentsOf are the code blocks of a folder's doc comments, by file.
func commentsOf(t *testing.T, folder string) map[string][]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	require.NoError(t, err)
	found := map[string][]string{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, group := range file.Comments {
			for _, block := range new(godoc.Parser).Parse(group.Text()).Content {
				if code, ok := block.(*godoc.Code); ok {
					key := folder + "/" + filepath.Base(name)
					found[key] = append(found[key], code.Text)
				}
			}
		}
	}
	return found
}

// asProgram is a package of a block, if it is one of Go: statements, or declarations.
func asProgram(folder, code string, named map[string]string) (string, bool) {
	code = strings.ReplaceAll(code, "{ … }", `{ panic("left out") }`)
	for _, body := range []string{"func _() error {\n" + code + "\n}\n", code} {
		file, err := parser.ParseFile(token.NewFileSet(), "", "package block\n"+body, 0)
		if err != nil || len(file.Decls) == 0 {
			continue
		}
		var paths []string
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok {
					at := named[x.Name]
					for _, where := range []string{"", folder} {
						if special := imported[where][x.Name]; special != "" {
							at = library + "/" + special
						}
					}
					if line := fmt.Sprintf("import %s %q\n", x.Name, at); at != "" && !slices.Contains(paths, line) {
						paths = append(paths, line)
					}
				}
			}
			return true
		})
		if len(paths) == 0 {
			return "", false // it is no code that uses a package
		}
		return "package block\n" + strings.Join(paths, "") + body, true
	}
	return "", false
}
