package deptest_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/surehook/surehook"

// graph has the imports of every package of the module, by the package's folder
// ("." is the root): folders for the module's own packages, import paths for the
// rest. Files of every platform count, test files do not.
type graph map[string][]string

func load(tree fs.FS) (graph, error) {
	g := graph{}
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return skip(tree, name)
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
		if err != nil {
			return err
		}
		folder := path.Dir(name)
		if _, seen := g[folder]; !seen {
			g[folder] = nil
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			switch rest, own := strings.CutPrefix(imported, module+"/"); {
			case imported == module:
				imported = "."
			case own:
				imported = rest
			}
			g[folder] = append(g[folder], imported)
		}
		return nil
	})
	return g, err
}

// skip leaves out the folders that the go command leaves out of ./... and
// ./examples/...
func skip(tree fs.FS, folder string) error {
	if folder == "." || folder == "examples" {
		return nil
	}
	base := path.Base(folder)
	_, err := fs.Stat(tree, path.Join(folder, "go.mod"))
	if err == nil || base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return fs.SkipDir
	}
	return nil
}

// reach returns all packages that a package imports, also through packages of the
// module, with the chain of imports that leads there.
func (g graph) reach(from string) map[string][]string {
	chains := map[string][]string{}
	queue := [][]string{{from}}
	for len(queue) > 0 {
		chain := queue[0]
		queue = queue[1:]
		for _, to := range g[chain[len(chain)-1]] {
			if _, seen := chains[to]; seen {
				continue
			}
			chains[to] = append(slices.Clone(chain), to)
			queue = append(queue, chains[to])
		}
	}
	return chains
}

func (g graph) packages() []string { return slices.Sorted(maps.Keys(g)) }

// standard tells the standard library's import paths: their first element has
// no full stop, and they are not folders of the module.
func (g graph) standard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !g.own(imported) && !strings.Contains(first, ".")
}

func (g graph) own(imported string) bool { _, ok := g[imported]; return ok }

// match knows "dedup" (that folder), "dedup/..." (it and all below) and
// "dedup/*" (those directly below).
func match(pattern, name string) bool {
	if root, ok := strings.CutSuffix(pattern, "/..."); ok {
		return name == root || strings.HasPrefix(name, root+"/")
	}
	matched, err := path.Match(pattern, name)
	return err == nil && matched
}

func matchAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return match(pattern, name) })
}
