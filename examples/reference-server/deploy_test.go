package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The files for operators name flags that there are, and their shell is shell.
func TestDeployNamesRealFlags(t *testing.T) {
	t.Parallel()
	_, _, help := run(t, t.TempDir(), nil, "-help")
	flags := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^  -([a-z-]+)`).FindAllStringSubmatch(help, -1) {
		flags[m[1]] = true
	}
	require.True(t, flags["secret-key-file"])
	files, err := filepath.Glob("deploy/*")
	require.NoError(t, err)
	named := 0
	for _, file := range append(files, "docs/running.md", "README.md") {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`SUREHOOK_([A-Z_]*[A-Z])`).FindAllStringSubmatch(string(text), -1) {
			name := strings.ToLower(strings.ReplaceAll(m[1], "_", "-"))
			if name == "host" || name == "backend" || name == "token" { // of the proxy's file, and the consumer's
				continue
			}
			require.True(t, flags[name], "%s: %s", file, m[0])
			named++
		}
		for _, m := range regexp.MustCompile("reference-server((?: -[a-z-]+(?:[ =][^ `\n-][^ `\n]*)?)+)").FindAllStringSubmatch(string(text), -1) {
			for _, f := range regexp.MustCompile(` -([a-z-]+)`).FindAllStringSubmatch(m[1], -1) {
				require.True(t, flags[f[1]], "%s: -%s", file, f[1])
				named++
			}
		}
		for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)\n```").FindAllStringSubmatch(string(text), -1) {
			out, err := exec.CommandContext(t.Context(), "bash", "-n", "-c", m[1]).CombinedOutput()
			require.NoError(t, err, "%s: %s\n%s", file, m[1], out)
		}
	}
	require.Greater(t, named, 15)
}

// The secrets that compose.yaml asks for are made, once, and are ones that the server takes.
func TestDeploySecrets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text, err := os.ReadFile("deploy/secrets.sh")
	require.NoError(t, err)
	script := filepath.Join(dir, "secrets.sh")
	require.NoError(t, os.WriteFile(script, text, 0o755)) //nolint:gosec // it is run
	read := func() (all []string) {
		out, err := exec.CommandContext(t.Context(), script).CombinedOutput()
		require.NoError(t, err, "%s", out)
		for _, name := range []string{"database", "sealing-keys", "operator-token", "postgres-password"} {
			text, err := os.ReadFile(filepath.Join(dir, "secrets", name))
			require.NoError(t, err)
			all = append(all, string(text))
		}
		return all
	}
	made := read()
	require.Equal(t, made, read(), "what is there stays")
	require.Equal(t, "postgres://surehook:"+made[3]+"@postgres:5432/surehook\n", made[0])
	info, err := os.Stat(filepath.Join(dir, "secrets"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	compose, err := os.ReadFile("deploy/compose.yaml")
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`file: \./secrets/(\S+)`).FindAllStringSubmatch(string(compose), -1) {
		require.FileExists(t, filepath.Join(dir, "secrets", m[1]))
	}
	s := launch(t, nil, "-addr", "127.0.0.1:0", "-database", filepath.Join(dir, "test.db"),
		"-secret-key-file", filepath.Join(dir, "secrets", "sealing-keys"), "-operator-token-file", filepath.Join(dir, "secrets", "operator-token"))
	defer s.stop()
	s.get(strings.TrimSpace(made[2]), "/notices").is(200)
}

// systemd takes the unit as it is, except for where the program is. It is not run: that
// takes root.
func TestUnitIsOne(t *testing.T) {
	t.Parallel()
	verify, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("deploy/surehook.service is not looked at: there is no systemd-analyze here")
	}
	text, err := os.ReadFile("deploy/surehook.service")
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(text), "/usr/local/bin/reference-server"))
	unit := filepath.Join(t.TempDir(), "surehook.service")
	require.NoError(t, os.WriteFile(unit, []byte(strings.ReplaceAll(string(text), "/usr/local/bin/reference-server", binary)), 0o600))
	out, err := exec.CommandContext(t.Context(), verify, "verify", "--man=no", unit).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NotContains(t, string(out), "surehook.service", "unknown settings are warnings")
}
