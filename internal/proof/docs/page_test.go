package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../../.."

// block is a fenced block of a page.
type block struct {
	page string // its file, from the root
	line int    // of its fence
	lang string // of its fence: go, sh, sql …

	// mark and about are of the comment in the line before the fence: for
	// <!-- go: frame=receive --> they are "go" and "frame=receive".
	mark, about string

	text string
}

func (b block) String() string { return fmt.Sprintf("%s:%d (%s)", b.page, b.line, b.lang) }

var comment = regexp.MustCompile(`^\s*<!-- (go|file|run|prints): (\S+) -->\s*$`)

// pages are the files whose blocks are tried.
func pages(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	names := []string{"README.md", "AGENTS.md"}
	for _, file := range found {
		names = append(names, "docs/"+filepath.Base(file))
	}
	return names
}

// blocks are the fenced blocks of all pages, in their order.
func blocks(t *testing.T) (all []block) {
	t.Helper()
	for _, page := range pages(t) {
		text, err := os.ReadFile(filepath.Join(root, page))
		require.NoError(t, err)
		all = append(all, blocksOf(t, page, string(text))...)
	}
	return all
}

func blocksOf(t *testing.T, page, text string) (all []block) {
	t.Helper()
	var open *block
	var indent, previous string
	for i, line := range strings.Split(text, "\n") {
		fence := strings.TrimLeft(line, " ")
		switch {
		case open == nil && strings.HasPrefix(fence, "```"):
			indent = line[:len(line)-len(fence)]
			open = &block{page: page, line: i + 1, lang: strings.TrimPrefix(fence, "```")}
			if m := comment.FindStringSubmatch(previous); m != nil {
				open.mark, open.about = m[1], m[2]
			} else if strings.HasPrefix(strings.TrimSpace(previous), "<!--") {
				t.Errorf("%s: the comment before it is none of go, file, run and prints: %s", open, previous)
			}
		case open != nil && fence == "```":
			all = append(all, *open)
			open = nil
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		}
		previous = line
	}
	require.Nil(t, open, "a block is not closed")
	return all
}

// named returns the block with this mark, of one page.
func named(t *testing.T, page, mark, about string) block {
	t.Helper()
	for _, b := range blocks(t) {
		if b.page == page && b.mark == mark && b.about == about {
			return b
		}
	}
	require.FailNow(t, "there is no such block", "%s: <!-- %s: %s -->", page, mark, about)
	return block{}
}
