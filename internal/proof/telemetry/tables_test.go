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
	otelmetric "go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/surehook/surehook/receiver/receiverotel"
	"github.com/surehook/surehook/receiver/receiverprom"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/senderotel"
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

// named is a meter that notes the names of its instruments.
type named struct {
	noop.Meter
	names []string
}

// naming provides it.
type naming struct {
	noop.MeterProvider
	meter *named
}

func (n naming) Meter(string, ...otelmetric.MeterOption) otelmetric.Meter { return n.meter }

func (n *named) Int64Counter(name string, _ ...otelmetric.Int64CounterOption) (otelmetric.Int64Counter, error) {
	n.names = append(n.names, name)
	return noop.Int64Counter{}, nil
}

func (n *named) Int64Gauge(name string, _ ...otelmetric.Int64GaugeOption) (otelmetric.Int64Gauge, error) {
	n.names = append(n.names, name)
	return noop.Int64Gauge{}, nil
}

func (n *named) Float64Histogram(name string, _ ...otelmetric.Float64HistogramOption) (otelmetric.Float64Histogram, error) {
	n.names = append(n.names, name)
	return noop.Float64Histogram{}, nil
}

func (n *named) Int64ObservableGauge(name string, _ ...otelmetric.Int64ObservableGaugeOption) (otelmetric.Int64ObservableGauge, error) {
	n.names = append(n.names, name)
	return noop.Int64ObservableGauge{}, nil
}

func (n *named) Float64ObservableGauge(name string, _ ...otelmetric.Float64ObservableGaugeOption) (otelmetric.Float64ObservableGauge, error) {
	n.names = append(n.names, name)
	return noop.Float64ObservableGauge{}, nil
}

// docs/metrics.md names every instrument of OpenTelemetry, and no other.
func TestPageNamesTheInstruments(t *testing.T) {
	made := naming{meter: &named{}}
	sending, err := senderotel.New(&senderotel.Config{MeterProvider: made})
	require.NoError(t, err)
	store, err := memory.New(nil)
	require.NoError(t, err)
	h, err := history.New(store, nil)
	require.NoError(t, err)
	_, err = sending.ObserveTotals(h)
	require.NoError(t, err)
	_, err = receiverotel.New(&receiverotel.Config{MeterProvider: made})
	require.NoError(t, err)
	_, page, found := strings.Cut(read(t, "docs/metrics.md"), "## Metrics for OpenTelemetry\n")
	require.True(t, found)
	page, _, _ = strings.Cut(page, "\n## ")
	_, page, _ = strings.Cut(page, "\n- ")
	var listed []string
	for _, name := range regexp.MustCompile("`(surehook[a-z_.]+)`").FindAllStringSubmatch(page, -1) {
		listed = append(listed, name[1])
	}
	require.ElementsMatch(t, made.meter.names, listed)
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
