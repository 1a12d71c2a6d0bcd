package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/surehook/surehook/internal/proof/bench/child"
)

// riverProgram builds the program that works River jobs. It is a module of its
// own, so that River is no dependency of the library.
func (b *bench) riverProgram(ctx context.Context) (string, error) {
	if b.river != "" {
		return b.river, nil
	}
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/surehook/surehook").Output()
	if err != nil {
		return "", fmt.Errorf("finding the source of River's part: run this in the repository: %w", err)
	}
	program := filepath.Join(b.folder, "river")
	build := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join(strings.TrimSpace(string(out)), "internal/proof/bench/river"), "-o", program, ".")
	build.Env = append(os.Environ(), "GOWORK=off") // it is in no workspace
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building River's part: %w\n%s", err, out)
	}
	b.river = program
	return program, nil
}

// riverJobs measures River: jobs that each make one signed POST from its worker,
// with the settings of River's own benchmark.
func (b *bench) riverJobs(ctx context.Context, r *endpoint, variant string, workers int) (_ []sample, err error) {
	program, err := b.riverProgram(ctx)
	if err != nil {
		return nil, err
	}
	s, err := b.postgres(ctx)
	if err != nil {
		return nil, err
	}
	dsn, drop, err := s.fresh(ctx, b.name("river"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	n := b.of(60_000, 20_000)
	p, err := child.Start(ctx, "river", program, nil, map[string]any{"DSN": dsn, "URL": r.url, "N": n, "Workers": workers}, &b.riverVersion)
	if err != nil {
		return nil, err
	}
	return warmDrained(p, r, s.cpu, variant)
}
