package console_test

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const axeVersion = "4.14.1"

// axe is the source of axe-core, which looks for what keeps people from using a page. It
// comes from the npm registry, and is kept in the user's cache. Where it cannot be had,
// the test says so and goes on without it, or fails if SUREHOOK_REQUIRE names axe.
func axe(t *testing.T) string {
	t.Helper()
	source, err := axeSource(t)
	if err == nil {
		return source
	}
	if slices.Contains(strings.Split(os.Getenv("SUREHOOK_REQUIRE"), ","), "axe") {
		t.Fatalf("axe-core: %v", err)
	}
	t.Logf("SKIPPED: the audit by axe-core: %v", err)
	return ""
}

func axeSource(t *testing.T) (string, error) {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	file := filepath.Join(cache, "surehook-tests", "axe-core-"+axeVersion+".js")
	if b, err := os.ReadFile(file); err == nil {
		return string(b), nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	dir := t.TempDir()
	if out, err := exec.CommandContext(ctx, "npm", "pack", "--silent", "--pack-destination", dir, "axe-core@"+axeVersion).CombinedOutput(); err != nil {
		return "", errors.Join(err, errors.New(string(out)))
	}
	b, err := unpacked(filepath.Join(dir, "axe-core-"+axeVersion+".tgz"), "package/axe.min.js")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return "", err
	}
	return string(b), os.WriteFile(file, b, 0o600)
}

// unpacked is a file of a compressed archive.
func unpacked(archive, name string) ([]byte, error) {
	f, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err != nil {
			return nil, err
		}
		if h.Name == name {
			return io.ReadAll(r)
		}
	}
}

// violations are what axe finds on the page: the rules of WCAG 2.2 AA and good practice.
func (b *browser) violations(source string) []string {
	b.t.Helper()
	if !eval[bool](b, "'axe' in window") {
		eval[any](b, source+";0")
	}
	return eval[[]string](b, `axe.run().then(r => r.violations.flatMap(v => v.nodes.map(n => v.id + ': ' + n.target + ' ' + n.failureSummary.slice(0, 200))))`)
}
