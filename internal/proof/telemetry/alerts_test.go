package telemetry_test

import (
	"encoding/json"
	"log/slog"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metricsql"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/surehook/surehook"
	"github.com/surehook/surehook/receiver/receiverprom"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/senderprom"
	"github.com/surehook/surehook/sender/sendertest"
)

// A dashboard and the rules name only what the collectors have.
var observed = []string{"sender/senderprom", "receiver/receiverprom"}

type alert struct {
	Alert       string
	Expr        string
	For         string
	Labels      map[string]string
	Annotations map[string]string
}

func alerts(t *testing.T, folder string) []alert {
	t.Helper()
	return alertsOf(t, read(t, folder+"/alerts.yml"))
}

func alertsOf(t *testing.T, text string) (all []alert) {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string
			Rules []alert
		}
	}
	d := yaml.NewDecoder(strings.NewReader(text))
	d.KnownFields(true)
	require.NoError(t, d.Decode(&file))
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	require.NotEmpty(t, all)
	return all
}

type panel struct {
	Title   string
	Type    string
	Targets []struct{ Expr, LegendFormat string }
}

func panels(t *testing.T, folder string) (all []panel) {
	t.Helper()
	var file struct{ Panels []panel }
	require.NoError(t, json.Unmarshal([]byte(read(t, folder+"/dashboard.json")), &file))
	require.NotEmpty(t, file.Panels)
	return file.Panels
}

// Each alert's query can be parsed and names metrics and labels that there are, and its
// runbook is a section of docs/alerts.md. Each section is an alert's.
func TestAlerts(t *testing.T) {
	sections := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^### (\w+)$`).FindAllStringSubmatch(read(t, "docs/alerts.md"), -1) {
		sections["https://github.com/surehook/surehook/blob/main/docs/alerts.md#"+strings.ToLower(found[1])] = true
	}
	for _, folder := range observed {
		for _, a := range alerts(t, folder) {
			checkQuery(t, a.Expr, a.Alert)
			require.Contains(t, []string{"critical", "warning", "info"}, a.Labels["severity"], a.Alert)
			require.NotEmpty(t, a.Annotations["summary"], a.Alert)
			require.Regexp(t, `^\d+[mh]$`, a.For, a.Alert)
			runbook := a.Annotations["runbook_url"]
			require.True(t, sections[runbook], "%s: docs/alerts.md has no section for %q", a.Alert, runbook)
			require.True(t, strings.HasSuffix(runbook, "#"+strings.ToLower(a.Alert)), "%s has the runbook of another alert", a.Alert)
			delete(sections, runbook)
		}
	}
	require.Empty(t, sections, "sections without an alert")
}

// The rules that docs/alerts.md itself has can be loaded, and their queries can be parsed.
func TestRulesOfThePage(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(read(t, "docs/alerts.md"), -1)
	require.NotEmpty(t, blocks)
	for _, b := range blocks {
		for _, a := range alertsOf(t, b[1]) {
			_, err := metricsql.Parse(a.Expr)
			require.NoError(t, err, a.Alert)
			require.NotEmpty(t, a.Annotations["summary"], a.Alert)
		}
	}
}

// An alert that a counter has risen at all asks for a series that is there from the
// beginning: increase does not see the rise from a series that is not there to its first
// value.
func TestRisesAreSeen(t *testing.T) {
	sending, err := senderprom.New(nil)
	require.NoError(t, err)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(sending, receiverprom.New())
	fresh, err := registry.Gather()
	require.NoError(t, err)
	there := map[string][]*dto.Metric{}
	for _, family := range fresh {
		there[family.GetName()] = family.GetMetric()
	}
	n := 0
	for _, folder := range observed {
		for _, a := range alerts(t, folder) {
			parsed, err := metricsql.Parse(a.Expr)
			require.NoError(t, err)
			metricsql.VisitAll(parsed, func(e metricsql.Expr) {
				f, ok := e.(*metricsql.FuncExpr)
				if !ok || f.Name != "increase" {
					return
				}
				n++
				asked := f.Args[0].(*metricsql.RollupExpr).Expr.(*metricsql.MetricExpr).LabelFilterss[0]
				require.True(t, slices.ContainsFunc(there[asked[0].Value], func(m *dto.Metric) bool {
					return !slices.ContainsFunc(asked[1:], func(f metricsql.LabelFilter) bool {
						return !slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetName() == f.Label && l.GetValue() == f.Value })
					})
				}), "%s: %s is not there before its first rise", a.Alert, f.AppendString(nil))
			})
		}
	}
	require.NotZero(t, n)
}

// SurehookAttemptsFail tells of endpoints that fail at everything, long after their
// subscriptions have left the lane of the proven ones; and of nothing while they answer.
func TestAttemptsFailFires(t *testing.T) {
	all := alerts(t, "sender/senderprom")
	i := slices.IndexFunc(all, func(a alert) bool { return a.Alert == "SurehookAttemptsFail" })
	require.GreaterOrEqual(t, i, 0)
	expr, err := metricsql.Parse(all[i].Expr)
	require.NoError(t, err)

	metrics, err := senderprom.New(nil)
	require.NoError(t, err)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics)
	healthy := slices.Repeat([]sendertest.Step{sendertest.Status(http.StatusOK)}, 20)
	endpoint := sendertest.NewRoundTripper(append(healthy, sendertest.Status(http.StatusBadRequest))...)
	store, err := memory.New(nil)
	require.NoError(t, err)
	sys, err := surehook.NewSender(store, sender.SealingKey{ID: "test", Key: []byte("0123456789abcdef0123456789abcdef")}, &surehook.SenderConfig{
		Logger:   slog.New(slog.DiscardHandler),
		Dispatch: dispatch.Config{UnguardedTransport: endpoint, Hooks: metrics.Hooks()},
	})
	require.NoError(t, err)
	owner, _, err := sys.Registry.CreateSubscriber(t.Context(), sender.NewSubscriber{})
	require.NoError(t, err)
	_, err = sys.Registry.Subscribe(t.Context(), sender.NewSubscription{Subscriber: owner.ID, URL: "https://customer.example/webhooks"})
	require.NoError(t, err)
	fires := func() bool {
		before, err := registry.Gather()
		require.NoError(t, err)
		for i := range 20 {
			_, err := sys.Publish(t.Context(), sender.Event{Type: "order.paid", Object: sender.Object{Type: "order", ID: strconv.Itoa(i)}})
			require.NoError(t, err)
		}
		_, err = sys.Dispatcher.RunOnce(t.Context())
		require.NoError(t, err)
		after, err := registry.Gather()
		require.NoError(t, err)
		return !math.IsNaN(value(t, expr, before, after))
	}

	require.False(t, fires(), "all are answered with 200")
	fires() // the endpoint begins to fail
	require.True(t, fires(), "all are answered with 400")
}

// value is that of a query between two scrapes, or NaN if it has none. It reads the part of
// PromQL in which each side of an operator has one value at most.
func value(t *testing.T, e metricsql.Expr, before, after []*dto.MetricFamily) float64 {
	t.Helper()
	switch e := e.(type) {
	case *metricsql.NumberExpr:
		return e.N
	case *metricsql.AggrFuncExpr:
		require.Equal(t, "sum", e.Name)
		rate := e.Args[0].(*metricsql.FuncExpr)
		require.Equal(t, "rate", rate.Name)
		asked := rate.Args[0].(*metricsql.RollupExpr).Expr.(*metricsql.MetricExpr).LabelFilterss[0]
		return total(after, asked) - total(before, asked)
	case *metricsql.BinaryOpExpr:
		l, r := value(t, e.Left, before, after), value(t, e.Right, before, after)
		switch e.Op {
		case "-":
			return l - r
		case "/":
			return l / r
		case ">":
			if l > r {
				return l
			}
			return math.NaN()
		case "or":
			if math.IsNaN(l) {
				return r
			}
			return l
		}
	}
	require.FailNow(t, "not read", "%T %s", e, e.AppendString(nil))
	return 0
}

// total sums up the counters, or the counts of histograms, that a query asks for.
func total(families []*dto.MetricFamily, asked []metricsql.LabelFilter) (sum float64) {
	for _, family := range families {
		if family.GetName() != strings.TrimSuffix(asked[0].Value, "_count") {
			continue
		}
		for _, m := range family.GetMetric() {
			if !slices.ContainsFunc(asked[1:], func(f metricsql.LabelFilter) bool {
				return f.IsNegative == slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetName() == f.Label && l.GetValue() == f.Value })
			}) {
				sum += m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}

// Each panel's queries can be parsed and name metrics and labels that there are. Each metric
// is in a panel.
func TestDashboards(t *testing.T) {
	shown := map[string]bool{}
	for _, folder := range observed {
		for _, p := range panels(t, folder) {
			if p.Type != "row" {
				require.NotEmpty(t, p.Targets, p.Title)
			}
			for _, q := range p.Targets {
				expr := strings.NewReplacer("$__rate_interval", "5m", "$job", "shop").Replace(q.Expr)
				for _, name := range checkQuery(t, expr, p.Title) {
					shown[name] = true
				}
				for _, label := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(q.LegendFormat, -1) {
					require.Regexp(t, `\([^()]*\b`+label[1]+`\b[^()]*\)`, q.Expr, "%s: the legend names a label that the query drops", p.Title)
				}
			}
		}
	}
	for _, m := range metrics(t) {
		require.True(t, shown[m.name], "no panel shows %s", m.name)
	}
}

func TestChecksOfQueriesBite(t *testing.T) {
	known := byName(t)
	for expr, want := range map[string]string{
		"sum(surehook_attempts": "parse", "surehook_attempts_per_day": "no metric", `surehook_attempts_total{url="x"}`: "no label", "sum by (url) (surehook_attempts_total)": "no label",
		"rate(surehook_backlog_deliveries[5m])": "no counter",
		"surehook_step_seconds":                 "no sample", "surehook_attempts_total_bucket": "no metric",
	} {
		_, problem := namesOf(known, expr)
		require.Contains(t, problem, want, expr)
	}
}

func checkQuery(t *testing.T, expr, where string) []string {
	t.Helper()
	names, problem := namesOf(byName(t), expr)
	require.Empty(t, problem, "%s: %s", where, expr)
	require.NotEmpty(t, names, where)
	return names
}

func byName(t *testing.T) map[string]metric {
	known := map[string]metric{}
	for _, m := range metrics(t) {
		known[m.name] = m
	}
	return known
}

// namesOf are the metrics of a query, or what is wrong with it.
func namesOf(known map[string]metric, expr string) (names []string, problem string) {
	parsed, err := metricsql.Parse(expr)
	if err != nil {
		return nil, "it cannot be parsed: " + err.Error()
	}
	labels := []string{"job", "instance"}
	metricsql.VisitAll(parsed, func(e metricsql.Expr) {
		m, ok := e.(*metricsql.MetricExpr)
		if !ok {
			return
		}
		for _, filters := range m.LabelFilterss {
			name := ""
			for _, f := range filters {
				if f.Label == "__name__" {
					name = f.Value
				}
			}
			found, wrong := metricOf(known, name)
			if wrong != "" {
				problem = wrong
				return
			}
			names = append(names, found.name)
			labels = append(labels, found.labels...)
			if strings.HasSuffix(name, "_bucket") {
				labels = append(labels, "le")
			}
			for _, f := range filters {
				if f.Label != "__name__" && f.Label != "job" && !slices.Contains(found.labels, f.Label) {
					problem = "no label " + f.Label + " of " + name
				}
			}
		}
	})
	metricsql.VisitAll(parsed, func(e metricsql.Expr) {
		switch e := e.(type) {
		case *metricsql.AggrFuncExpr:
			for _, label := range e.Modifier.Args {
				if problem == "" && !slices.Contains(labels, label) {
					problem = "no label " + label + " of what is aggregated"
				}
			}
		case *metricsql.FuncExpr:
			if e.Name == "rate" || e.Name == "increase" {
				of := regexp.MustCompile(`surehook_\w+`).FindString(string(e.AppendString(nil)))
				if m, _ := metricOf(known, of); problem == "" && m.kind() == "gauge" {
					problem = "no counter: " + of
				}
			}
		}
	})
	return names, problem
}

// metricOf is the metric that has a time series.
func metricOf(known map[string]metric, series string) (m metric, problem string) {
	if m, ok := known[series]; ok {
		if m.kind() == "histogram" {
			return m, "no sample is named so: " + series + " is a histogram"
		}
		return m, ""
	}
	for _, suffix := range []string{"_bucket", "_count", "_sum"} {
		if m, ok := known[strings.TrimSuffix(series, suffix)]; ok && m.kind() == "histogram" {
			return m, ""
		}
	}
	return m, "there is no metric " + series
}
