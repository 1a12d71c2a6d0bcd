package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// report is the content of proof.json.
type report struct {
	Date     string    `json:"date"`
	Commit   string    `json:"commit"`
	CPU      string    `json:"cpu"`
	Cores    int       `json:"cores"`
	Go       string    `json:"go"`
	Postgres string    `json:"postgresql,omitempty"`
	Time     string    `json:"time"` // that was given
	Took     string    `json:"took"`
	Seed     uint64    `json:"seed"`
	Failed   bool      `json:"failed"`
	Parts    []*result `json:"parts"`

	began time.Time
}

// result is the result of a part.
type result struct {
	Part     string    `json:"part"`
	Took     string    `json:"took"`
	Figures  []figure  `json:"figures"`
	Failures []failure `json:"failures"`
	Details  []any     `json:"details,omitempty"`

	began    time.Time
	progress func(line string)
}

type figure struct {
	Name  string `json:"name"`
	Value any    `json:"value"`
}

type failure struct {
	What   string `json:"what"`
	Repeat string `json:"repeat,omitempty"` // a command
}

func (r *result) figure(name string, value any) { r.Figures = append(r.Figures, figure{name, value}) }

// fail notes a failure, and the command that repeats it.
func (r *result) fail(what, repeat string) {
	r.progress("FAILED: " + r.Part + ": " + what)
	r.Failures = append(r.Failures, failure{what, repeat})
}

func newReport(ctx context.Context, o options) *report {
	r := &report{
		began: time.Now(), Date: time.Now().UTC().Format(time.DateTime), Commit: commit(ctx), CPU: cpu(), Cores: runtime.NumCPU(),
		Go: runtime.Version(), Time: o.time.String(), Seed: o.seed, Parts: []*result{},
	}
	return r
}

func (r *report) add(p *result) {
	r.Parts = append(r.Parts, p)
	r.Failed = r.Failed || len(p.Failures) > 0
}

// finish fills in the fields that are known only at the end.
func (r *report) finish(ctx context.Context, b *bench) {
	r.Took = time.Since(r.began).Round(time.Second).String()
	if b.server == nil {
		return
	}
	db, err := sql.Open("pgx", b.server.DSN())
	if err != nil {
		return
	}
	defer db.Close()
	_ = db.QueryRowContext(ctx, "SHOW server_version").Scan(&r.Postgres) // left out if it does not answer
}

// write writes both forms into a folder.
func (r *report) write(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	b, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "proof.json"), append(b, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "proof.md"), []byte("# Proof\n\n"+r.table()), 0o644)
}

// commit is the tree's commit.
func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	name := strings.TrimSpace(string(out))
	if changed, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--untracked-files=no").Output(); err != nil || len(changed) > 0 {
		name += ", changed"
	}
	return name
}

func cpu() string {
	b, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(b)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimLeft(strings.TrimSpace(name), ": \t")
		}
	}
	return fmt.Sprint("unknown, ", runtime.GOARCH)
}
