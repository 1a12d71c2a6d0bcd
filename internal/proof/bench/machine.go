package main

import (
	"context"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// machine has the facts on which figures depend besides the code.
type machine struct {
	CPU      string            `json:"cpu"`
	Cores    int               `json:"cores"`
	Go       string            `json:"go"`
	Versions map[string]string `json:"versions"`
	Date     string            `json:"date"`
}

// machine returns the facts about the machine of a run, and the versions of the software.
func (b *bench) machine(ctx context.Context) machine {
	m := machine{CPU: cpuModel(), Cores: runtime.NumCPU(), Go: runtime.Version(), Versions: map[string]string{}, Date: time.Now().Format(time.DateOnly)}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == "modernc.org/sqlite" || d.Path == "github.com/jackc/pgx/v5" {
				m.Versions[d.Path] = d.Version
			}
		}
	}
	if b.riverVersion != "" {
		m.Versions["github.com/riverqueue/river"] = b.riverVersion
	}
	if b.server != nil {
		var v string
		if err := b.server.admin.QueryRow(ctx, "SHOW server_version").Scan(&v); err == nil {
			m.Versions["PostgreSQL"] = v
		}
	}
	return m
}

func (m *machine) versions() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(m.Versions)) {
		all = append(all, name+" "+m.Versions[name])
	}
	return strings.Join(all, ", ")
}

func cpuModel() string {
	b, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(b)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimLeft(strings.TrimSpace(name), ": \t")
		}
	}
	return runtime.GOARCH
}
