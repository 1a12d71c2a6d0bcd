package schemes_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// npm is a program that asks the libraries of npm/package.json, one line a question.
type npm struct {
	t      *testing.T
	ask    *json.Encoder
	answer *json.Decoder
}

type npmQuestion struct {
	Do      string            `json:"do"`
	Vendor  string            `json:"vendor"`
	Secret  string            `json:"secret"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	ID      string            `json:"id"`
	// Certificate is Amazon's, in PEM.
	Certificate string `json:"certificate"`
	At          int64  `json:"at"`
	// These are of HTTP Message Signatures.
	Algorithm string   `json:"algorithm,omitempty"`
	URL       string   `json:"url,omitempty"`
	Fields    []string `json:"fields,omitempty"`
}

type npmAnswer struct {
	Good    bool              `json:"good"`
	Why     string            `json:"why"`
	Broken  string            `json:"broken"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

// newNPM starts the program. Without Node and npm, or without a registry, the test is skipped
// aloud, or fails if SUREHOOK_REQUIRE, a list with commas, names node.
func newNPM(t *testing.T) *npm {
	t.Helper()
	dir, err := npmFolder(t)
	if err != nil {
		if slices.Contains(strings.Split(os.Getenv("SUREHOOK_REQUIRE"), ","), "node") {
			t.Fatal(err)
		}
		t.Skipf("NOT COMPARED with the vendors' npm libraries: %v", err)
	}
	node := exec.Command("node", "compare.mjs") // it ends with its input
	node.Dir = dir
	var log bytes.Buffer
	node.Stderr = &log
	in, err := node.StdinPipe()
	require.NoError(t, err)
	out, err := node.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, node.Start())
	t.Cleanup(func() {
		_ = in.Close()
		if err := node.Wait(); err != nil {
			t.Errorf("compare.mjs: %v: %s", err, &log)
		}
	})
	return &npm{t, json.NewEncoder(in), json.NewDecoder(bufio.NewReader(out))}
}

// npmFolder returns a folder with the program beside the libraries, which are installed once
// for each package-lock.json and kept in the user's cache. No script of theirs is run.
func npmFolder(t *testing.T) (string, error) {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", err
		}
	}
	lock, err := os.ReadFile("npm/package-lock.json")
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(lock)
	kept := filepath.Join(cache, "surehook-tests", "schemes-"+hex.EncodeToString(sum[:8]))
	if _, err := os.Stat(kept); err != nil {
		if err := npmInstall(t, kept); err != nil {
			return "", err
		}
	}
	dir := t.TempDir()
	program, err := os.ReadFile("npm/compare.mjs")
	return dir, errors.Join(err, os.WriteFile(filepath.Join(dir, "compare.mjs"), program, 0o600),
		os.Symlink(filepath.Join(kept, "node_modules"), filepath.Join(dir, "node_modules")))
}

// npmInstall installs beside the folder and renames: others may do the same meanwhile.
func npmInstall(t *testing.T, folder string) error {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(folder), 0o750); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(folder), "schemes-*") //nolint:usetesting // it must be on the disk of the cache
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := os.ReadFile(filepath.Join("npm", name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	install := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--omit=optional", "--prefer-offline", "--fetch-timeout=60000", "--no-audit", "--no-fund")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w: %s", err, out)
	}
	if err := os.Rename(dir, folder); err != nil {
		if _, there := os.Stat(folder); there == nil {
			return nil
		}
		return err
	}
	return nil
}

func (n *npm) do(q npmQuestion) npmAnswer {
	n.t.Helper()
	require.NoError(n.t, n.ask.Encode(q))
	var a npmAnswer
	require.NoError(n.t, n.answer.Decode(&a))
	require.Empty(n.t, a.Broken, q.Vendor)
	return a
}
