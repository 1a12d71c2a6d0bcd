package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	unslug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// A link within the repository leads to a file that is there, and to a heading of it.
func TestLinks(t *testing.T) {
	found := 0
	for _, page := range pages(t) {
		text, err := os.ReadFile(filepath.Join(root, page))
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			found++
			file := filepath.Join(root, page)
			if target != "" {
				file = filepath.Join(filepath.Dir(file), target)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: the link %s leads nowhere", page, m[1])
			} else if anchor != "" && !headings(t, file)[anchor] {
				t.Errorf("%s: the link %s leads to no heading", page, m[1])
			}
		}
	}
	require.Greater(t, found, 100)
}

// headings are a page's, as the names that GitHub gives them.
func headings(t *testing.T, file string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	names := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(string(text), -1) {
		names[strings.ReplaceAll(unslug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return names
}
