package docs_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/postgres/postgrestest"
)

// Each block is covered by a rule, or this fails. The test that a rule names does what the
// rule says.
func TestEveryBlock(t *testing.T) {
	for _, b := range blocks(t) {
		switch b.lang {
		case "go": // TestGo
		case "sh":
			checkShell(t, b)
		case "python", "js", "php", "ruby": // TestReceiversWithoutGo, TestVectorProgram, TestSyntax
		case "sql": // TestSQL, and TestMySQL of internal/proof/mysql
		case "yaml": // TestRulesOfThePage of internal/proof/telemetry
			require.Equal(t, "docs/alerts.md", b.page, "%s: no other page's YAML is checked", b)
		case "json":
			require.True(t, json.Valid([]byte(b.text)), b.String())
		case "http": // TestVector
			require.Equal(t, "docs/receiving-without-go.md", b.page, "%s: no other page's requests are checked", b)
		case "text": // what a program prints, or an address: nothing to run
			require.NotEmpty(t, strings.TrimSpace(b.text), b.String())
		default:
			t.Errorf("%s: no rule covers this block: give it a language of rules_test.go", b)
		}
	}
}

// commands are what a block of shell may call: of what is not checked, others would be
// typing errors.
var commands = map[string]bool{
	"go": true, "git": true, "curl": true, "psql": true, "createdb": true, "createuser": true, "export": true, "cd": true, "mkdir": true, "openssl": true, "printf": true,
	"pg_dump": true, "pg_restore": true, "docker": true, "sqlite3": true,
}

var (
	assignment = regexp.MustCompile(`^([A-Z_]+=(\S+|"[^"]*"|'[^']*'|\$\([^)]*\)) )+`)
	goPath     = regexp.MustCompile(`(^|\s)\./(\S*?)(\.\.\.)?(\s|$)`)
)

// checkShell parses a block, and looks for what it names: its commands, and the folders of
// the Go commands, which are this repository's or the page's own files.
func checkShell(t *testing.T, b block) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "bash", "-n", "-c", b.text).CombinedOutput()
	require.NoError(t, err, "%s: %s", b, out)
	text := strings.ReplaceAll(b.text, "\\\n", " ")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(regexp.MustCompile(`\s#.*$`).ReplaceAllString(" "+strings.TrimSpace(line), ""))
		line = assignment.ReplaceAllString(line, "")
		if line == "" {
			continue
		}
		command, rest, _ := strings.Cut(line, " ")
		require.True(t, commands[command], "%s: %q is no command that the docs use", b, command)
		if command != "go" {
			continue
		}
		for _, m := range goPath.FindAllStringSubmatch(rest, -1) {
			require.True(t, isFolder(t, b.page, m[2]), "%s: there is no folder %q", b, m[2])
		}
	}
}

func isFolder(t *testing.T, page, folder string) bool {
	t.Helper()
	for _, b := range blocks(t) {
		if b.page == page && b.mark == "file" && strings.HasPrefix(b.about, strings.TrimSuffix(folder, "/")+"/") {
			return true
		}
	}
	info, err := os.Stat(filepath.Join(root, folder))
	return err == nil && info.IsDir()
}

// A block in another language that is no whole program is one that its language can read.
func TestSyntax(t *testing.T) {
	check := map[string][]string{
		"python": {"python3", "-c", "import ast, sys; ast.parse(sys.stdin.read())"},
		"js":     {"node", "--check", "-"},
		"php":    {"php", "-l"},
		"ruby":   {"ruby", "-c"},
	}
	for _, b := range blocks(t) {
		how, ok := check[b.lang]
		if !ok || b.mark == "run" { // those that are run have tests
			continue
		}
		t.Run(b.String(), func(t *testing.T) {
			if _, err := exec.LookPath(how[0]); err != nil {
				t.Skipf("NOT TESTED with %s: %v", how[0], err)
			}
			c := exec.CommandContext(t.Context(), how[0], how[1:]...)
			c.Stdin = strings.NewReader(b.text)
			out, err := c.CombinedOutput()
			require.NoError(t, err, string(out))
		})
	}
}

// The statements of a page run, in their order, on PostgreSQL. Those of operating.md have
// a test of their own, with roles, and those for MySQL are tried in internal/proof/mysql.
func TestSQL(t *testing.T) {
	for _, page := range pages(t) {
		if page == operating {
			continue
		}
		var statements []block
		for _, b := range blocks(t) {
			if b.page == page && b.lang == "sql" && !strings.HasSuffix(b.about, ".mysql.sql") {
				statements = append(statements, b)
			}
		}
		if statements == nil {
			continue
		}
		t.Run(page, func(t *testing.T) {
			pool := postgrestest.Pool(t)
			for _, b := range statements {
				_, err := pool.Exec(t.Context(), b.text)
				require.NoError(t, err, b.String())
			}
		})
	}
}
