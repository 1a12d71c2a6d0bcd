package docs_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every block of Go compiles. A whole program or a test stands for itself. A fragment
// names a frame of testdata/frames, which has the imports and what the fragment takes for
// granted; the fragment stands there in place of the line // BLOCK. In a fragment, { … }
// is code that the reader has.
//
// Their types are checked, with what the compiler knows of the packages that a reader's module
// imports. A go vet would analyse all of these packages, too, and a go build would link each
// program: both take far longer.
func TestGo(t *testing.T) {
	files := map[string]string{}
	for _, b := range blocks(t) {
		// internal/proof/telemetry compiles that page, with modules that the examples do not have.
		if b.lang != "go" || b.page == "docs/metrics.md" {
			continue
		}
		name, source := "block.go", ""
		if strings.HasPrefix(b.text, "package ") {
			source = fmt.Sprintf("//line %s:%d\n%s", b.page, b.line+1, b.text)
			if strings.Contains(source, "(t *testing.T)") {
				name = "block_test.go"
			}
		} else {
			source = framed(t, b)
		}
		files[fmt.Sprintf("%s_%d/%s", strings.ToLower(strings.TrimSuffix(path.Base(b.page), ".md")), b.line, name)] = source
	}
	set := token.NewFileSet()
	parsed, needed := map[string]*ast.File{}, map[string]bool{}
	for name, source := range files {
		file, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
		require.NoError(t, err)
		parsed[name] = file
		for _, spec := range file.Imports {
			needed[spec.Path.Value] = true
		}
	}
	all := "package all\n"
	for imported := range needed {
		all += "import _ " + imported + "\n"
	}
	folder := readers(t, map[string]string{"all/all.go": all})
	imports := importer.ForCompiler(set, "gc", exports(t, folder, asReader(), "./all"))
	for name, file := range parsed {
		checker := types.Config{Importer: imports, Error: func(err error) { t.Error(err) }}
		_, _ = checker.Check(name, set, []*ast.File{file}, nil) // it returns the first of the errors
	}
}

// framed returns a fragment in its frame.
func framed(t *testing.T, b block) string {
	t.Helper()
	frame := frameOf(t, b)
	text, err := os.ReadFile(filepath.Join("testdata", "frames", frame+".go"))
	require.NoError(t, err, "%s: the frame %s", b, frame)
	require.Equal(t, 1, bytes.Count(text, []byte("// BLOCK")), "of frame %s", frame)
	fragment := strings.ReplaceAll(b.text, "{ … }", `{ panic("left out") }`)
	fragment = fmt.Sprintf("\n//line %s:%d\n%s\n//line %s.go:1\n", b.page, b.line+1, fragment, frame)
	return usedOnly(t, b, strings.Replace(string(text), "// BLOCK", fragment, 1))
}

func frameOf(t *testing.T, b block) string {
	t.Helper()
	if name, ok := strings.CutPrefix(b.about, "frame="); ok && b.mark == "go" {
		return name
	}
	require.FailNow(t, "no rule covers this block", "%s: it is no whole program, and no comment before it names a frame: <!-- go: frame=NAME -->", b)
	return ""
}

// usedOnly returns a source without the imports that it does not use, and with a use of
// every variable that its fragment makes. Lines stay where they are.
func usedOnly(t *testing.T, b block, source string) string {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", source, 0)
	require.NoError(t, err, b.String())
	used := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok {
				used[x.Name] = true
			}
		}
		return true
	})
	out := []byte(source)
	offset := func(p token.Pos) int { return set.PositionFor(p, false).Offset }
	for _, spec := range file.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		require.NoError(t, err)
		name := path.Base(target)
		if name == "v5" {
			name = path.Base(path.Dir(target))
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name != "_" && !used[name] {
			for i := offset(spec.Pos()); i < offset(spec.End()); i++ {
				out[i] = ' '
			}
		}
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "block" {
			end := offset(f.Body.Rbrace)
			uses := ""
			for _, name := range made(f.Body.List) {
				uses += "_ = " + name + "; "
			}
			out = append(out[:end:end], append([]byte(uses+"return nil; "), out[end:]...)...)
		}
	}
	return string(out)
}

// made are the variables that statements declare in their own scope.
func made(list []ast.Stmt) (names []string) {
	for _, s := range list {
		if a, ok := s.(*ast.AssignStmt); ok && a.Tok == token.DEFINE {
			for _, left := range a.Lhs {
				if x, ok := left.(*ast.Ident); ok && x.Name != "_" {
					names = append(names, x.Name)
				}
			}
		}
	}
	return names
}
