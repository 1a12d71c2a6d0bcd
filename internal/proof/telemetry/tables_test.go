package telemetry_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/receiver/receiverprom"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/senderprom"
)

var update = flag.Bool("update", false, "write the table of metrics into docs/metrics.md")

const root = "../../.."

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	require.NoError(t, err)
	return string(text)
}

// metric is what a collector says of one.
type metric struct {
	name, help string
	labels     []string
}

var description = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: "((?:[^"\\]|\\.)*)", (?:unit: "", )?constLabels: \{\}, variableLabels: \{([^}]*)\}\}$`)

// metrics are those of all collectors.
func metrics(t *testing.T) (all []metric) {
	t.Helper()
	sending, err := senderprom.New(nil)
	require.NoError(t, err)
	store, err := memory.New(nil)
	require.NoError(t, err)
	h, err := history.New(store, nil)
	require.NoError(t, err)
	totals, err := senderprom.NewTotals(h, nil)
	require.NoError(t, err)
	for _, c := range []prometheus.Collector{sending, totals, receiverprom.New()} {
		descriptions := make(chan *prometheus.Desc, 100)
		c.Describe(descriptions)
		close(descriptions)
		for d := range descriptions {
			found := description.FindStringSubmatch(d.String())
			require.NotNil(t, found, d.String())
			m := metric{name: found[1], help: strings.ReplaceAll(found[2], `\"`, `"`)}
			if found[3] != "" {
				m.labels = strings.Split(found[3], ",")
			}
			all = append(all, m)
		}
	}
	return all
}

// kind is a metric's type by its name, which Prometheus's linter holds to the type.
func (m metric) kind() string {
	switch {
	case strings.HasSuffix(m.name, "_total"):
		return "counter"
	case strings.HasSuffix(m.name, "_seconds") && m.name != "surehook_oldest_due_seconds":
		return "histogram"
	}
	return "gauge"
}

// docs/metrics.md lists every metric with its type, labels and meaning, and no other.
func TestPageListsTheMetrics(t *testing.T) {
	const begin, end = "| metric | type | labels | meaning |\n", "\n\n`lane` is"
	var table strings.Builder
	table.WriteString(begin + "| --- | --- | --- | --- |")
	for _, m := range metrics(t) {
		labels := strings.Join(m.labels, "`, `")
		if labels != "" {
			labels = "`" + labels + "`"
		}
		fmt.Fprintf(&table, "\n| `%s` | %s | %s | %s |", m.name, m.kind(), labels, m.help)
	}
	page := read(t, "docs/metrics.md")
	if *update {
		before, _, found := strings.Cut(page, begin)
		if !found {
			before, _, _ = strings.Cut(page, "<!-- metrics -->")
		}
		_, after, _ := strings.Cut(page, end)
		page = before + table.String() + end + after
		require.NoError(t, os.WriteFile(filepath.Join(root, "docs", "metrics.md"), []byte(page), 0o600))
	}
	require.Contains(t, page, table.String()+end, "go test -run TestPageListsTheMetrics -update writes it")
}

// The programs of docs/metrics.md are those that are compiled here.
func TestPageShowsThePrograms(t *testing.T) {
	page := read(t, "docs/metrics.md")
	for _, name := range []string{"producer", "consumer"} {
		program := read(t, "internal/proof/telemetry/page/"+name+"/"+name+".go")
		require.Contains(t, page, "```go\n"+program+"```\n")
	}
	require.Equal(t, 2, strings.Count(page, "```go\n"), "blocks")
}
