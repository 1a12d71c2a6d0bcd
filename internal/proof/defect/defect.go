// Package defect plants deliberate defects in the library, one at a time, and reports which
// tests catch each defect. So it tests the tests: a suite that passes without the token
// check proves nothing about tokens.
//
// A defect is a small change of one file's text. The tree itself is never changed: the
// go command's -overlay flag lays the changed file over it. So defects can be tried
// side by side, and an interrupted try leaves no trace.
package defect

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Defect is one deliberate mistake, as somebody could make it.
type Defect struct {
	Name string // the mistake in words
	File string // from the module's root, with slashes
	Old  string // it occurs once in File
	New  string // it replaces Old

	Module string   // the folder of the module that has the tests, if it is none of the workspace; empty: the root
	Tests  []string // the tests of these packages of it must catch the defect
	Run    string   // the tests of these packages to run, as in go test -run; empty: all
}

// Outcome is the result of trying a defect.
type Outcome struct {
	Defect   string   `json:"defect"`
	File     string   `json:"file"`
	Caught   bool     `json:"caught"`
	By       []string `json:"by,omitempty"` // package and name of the first failed test of each package
	Problem  string   `json:"problem,omitempty"`
	Duration string   `json:"duration"`
}

// Apply returns the file's text with the defect in it.
func (d Defect) Apply(root string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(d.File)))
	if err != nil {
		return nil, fmt.Errorf("defect %q: %w", d.Name, err)
	}
	if n := bytes.Count(text, []byte(d.Old)); n != 1 {
		return nil, fmt.Errorf("defect %q: its text is %d times in %s: it must be there once, so write it anew after a change of the file", d.Name, n, d.File)
	}
	return bytes.Replace(text, []byte(d.Old), []byte(d.New), 1), nil
}

// Try runs the tests with the defect planted, and stops at the first that fails. It
// returns an error if the defect could not be tried, also if it does not compile.
func (d Defect) Try(ctx context.Context, root string) (Outcome, error) {
	out := Outcome{Defect: d.Name, File: d.File}
	changed, err := d.Apply(root)
	if err != nil {
		return out, err
	}
	dir, err := os.MkdirTemp("", "surehook-defect-")
	if err != nil {
		return out, err
	}
	defer os.RemoveAll(dir)
	overlay, err := lay(dir, filepath.Join(root, filepath.FromSlash(d.File)), changed)
	if err != nil {
		return out, err
	}
	args := []string{"test", "-json", "-count=1", "-failfast", "-vet=off", "-timeout=10m", "-overlay", overlay}
	if d.Run != "" {
		args = append(args, "-run", d.Run)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, d.Tests...)...)
	cmd.Dir, cmd.WaitDelay = filepath.Join(root, filepath.FromSlash(d.Module)), 10*time.Second
	if d.Module != "" {
		cmd.Env = append(os.Environ(), "GOWORK=off")
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	began := time.Now()
	stdout, err := cmd.Output()
	out.Duration = time.Since(began).Round(100 * time.Millisecond).String()
	if ctx.Err() != nil {
		return out, ctx.Err()
	}
	events, notBuilt := read(stdout)
	if notBuilt != "" {
		return out, fmt.Errorf("defect %q does not compile: %s", d.Name, notBuilt)
	}
	out.By = events
	out.Caught = err != nil && len(out.By) > 0
	switch {
	case err == nil:
		out.Problem = "all tests passed"
	case len(out.By) == 0:
		return out, fmt.Errorf("defect %q: go test failed without a test that did: %w: %s", d.Name, err, tail(stderr.String(), 500))
	}
	return out, nil
}

// lay writes the changed file, and the overlay that replaces the original by it.
func lay(dir, path string, changed []byte) (overlay string, err error) {
	file := filepath.Join(dir, filepath.Base(path))
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {absolute: file}})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, errors.Join(os.WriteFile(file, changed, 0o600), os.WriteFile(overlay, text, 0o600))
}

// read returns the tests that failed, the innermost of each package, and the compiler's
// messages, if there are any.
func read(stdout []byte) (failed []string, notBuilt string) {
	type event struct {
		Action, Package, Test, Output, FailedBuild string
	}
	var said strings.Builder
	byPackage := map[string]string{}
	var order []string
	var panicked []string
	hung := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(stdout))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		switch {
		case e.Action == "output" && strings.HasPrefix(e.Output, "panic: test timed out after "):
			hung[e.Package] = ", which did not end"
		case e.Action == "build-output":
			said.WriteString(e.Output)
		case e.FailedBuild != "":
			return nil, tail(said.String(), 500)
		case e.Action == "fail" && e.Test != "":
			// A test's end follows those of its subtests.
			if _, known := byPackage[e.Package]; !known {
				byPackage[e.Package] = e.Test
				order = append(order, e.Package)
			}
		case e.Action == "fail" && e.Test == "" && byPackage[e.Package] == "":
			panicked = append(panicked, e.Package)
		}
	}
	for _, p := range order {
		failed = append(failed, p+" "+byPackage[p]+hung[p])
	}
	for _, p := range panicked {
		if !slices.Contains(order, p) {
			failed = append(failed, p+" (the test program ended"+hung[p]+")")
		}
	}
	return failed, ""
}

func tail(s string, most int) string {
	return strings.TrimSpace(s[max(0, len(s)-most):])
}
