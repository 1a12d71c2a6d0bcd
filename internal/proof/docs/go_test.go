package docs_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
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
// One go vet compiles all of them: an overlay makes each a package of this module.
func TestGo(t *testing.T) {
	replace := map[string]string{}
	var packages []string
	folder := t.TempDir()
	for _, b := range blocks(t) {
		if b.lang != "go" || strings.HasPrefix(b.text, mainAlone) {
			continue
		}
		name := "block.go"
		source := b.text
		switch {
		case strings.HasPrefix(source, "package ") || strings.HasPrefix(source, "//"):
			if strings.Contains(source, "(t *testing.T)") {
				name = "block_test.go"
			}
			require.NotContains(t, source, "surehook/internal/", "%s: a reader cannot import it", b)
			source = fmt.Sprintf("//line %s:%d\n%s", b.page, b.line+1, source)
		default:
			source = framed(t, b)
		}
		dir := path.Join("internal/proof/docs/testdata/blocks", fmt.Sprintf("%s_%d", strings.TrimSuffix(path.Base(b.page), ".md"), b.line))
		file := filepath.Join(folder, strings.ReplaceAll(dir, "/", "_")+name)
		require.NoError(t, os.WriteFile(file, []byte(source), 0o600))
		absolute, err := filepath.Abs(filepath.Join(root, dir, name))
		require.NoError(t, err)
		replace[absolute] = file
		packages = append(packages, "./"+dir)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	file := filepath.Join(folder, "overlay.json")
	require.NoError(t, os.WriteFile(file, overlay, 0o600))
	// The code after a return is the frame's own.
	vet := exec.CommandContext(t.Context(), "go", append([]string{"vet", "-unreachable=false", "-overlay", file}, packages...)...)
	vet.Dir = root
	out, err := vet.CombinedOutput()
	require.NoError(t, err, string(out))
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

// unmarked are the fragments of README.md, by their beginnings: a page that GitHub shows
// first has no comments about tests.
var unmarked = map[string]string{
	"routes, err := receiver.Router(": "router",
	"hooks.Registry.Update(ctx, id, ": "operate",
}

func frameOf(t *testing.T, b block) string {
	t.Helper()
	if name, ok := strings.CutPrefix(b.about, "frame="); ok && b.mark == "go" {
		return name
	}
	for begin, name := range unmarked {
		if b.page == "README.md" && strings.HasPrefix(b.text, begin) {
			return name
		}
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
			out = append(out[:end:end], append([]byte(uses), out[end:]...)...)
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
