package senderprom_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/senderprom"
	"github.com/surehook/surehook/sender/sendertest"
)

// service is a sending service with its metrics.
func service(t *testing.T, cfg *senderprom.Config, transport http.RoundTripper) (*surehook.Sender[*memory.Tx], *senderprom.Collector, *prometheus.Registry) {
	t.Helper()
	metrics, err := senderprom.New(cfg)
	require.NoError(t, err)
	store, err := memory.New(nil)
	require.NoError(t, err)
	sys, err := surehook.NewSender(store, sender.SealingKey{ID: "1", Key: make([]byte, 32)}, &surehook.SenderConfig{
		PublishHooks: metrics.PublishHooks(),
		Network:      sender.Network{AllowPrivateNetworks: true},
		Dispatch:     dispatch.Config{Hooks: metrics.Hooks(), UnguardedTransport: transport},
		Logger:       slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	totals, err := senderprom.NewTotals(sys.History, nil)
	require.NoError(t, err)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics, totals)
	return sys, metrics, registry
}

func event(typ, id string) sender.Event {
	return sender.Event{Type: typ, Object: sender.Object{Type: "thing", ID: id}}
}

func TestCollector(t *testing.T) {
	for _, c := range []struct {
		name  string
		types []string
		want  string
	}{
		{"without types", nil, `
			# HELP surehook_attempts_total Attempts that were recorded here, by what became of the delivery, by how they failed (none, if they succeeded), and by the lane of the subscription.
			# TYPE surehook_attempts_total counter
			surehook_attempts_total{error_class="none",lane="new",outcome="delivered"} 1
			surehook_attempts_total{error_class="status",lane="proven",outcome="awaiting_retry"} 1
			# HELP surehook_published_events_total Events that were given to a publisher of this process, by what became of them: new, duplicate, dropped (its subscriber does not exist) or refused. A new one may be rolled back by the caller later.
			# TYPE surehook_published_events_total counter
			surehook_published_events_total{result="dropped"} 1
			surehook_published_events_total{result="duplicate"} 1
			surehook_published_events_total{result="new"} 2
			surehook_published_events_total{result="refused"} 1
		`},
		{"with types", []string{"order.paid"}, `
			# HELP surehook_attempts_total Attempts that were recorded here, by what became of the delivery, by how they failed (none, if they succeeded), and by the lane of the subscription.
			# TYPE surehook_attempts_total counter
			surehook_attempts_total{error_class="none",event_type="order.paid",lane="new",outcome="delivered"} 1
			surehook_attempts_total{error_class="status",event_type="other",lane="proven",outcome="awaiting_retry"} 1
			# HELP surehook_published_events_total Events that were given to a publisher of this process, by what became of them: new, duplicate, dropped (its subscriber does not exist) or refused. A new one may be rolled back by the caller later.
			# TYPE surehook_published_events_total counter
			surehook_published_events_total{event_type="order.paid",result="duplicate"} 1
			surehook_published_events_total{event_type="order.paid",result="new"} 1
			surehook_published_events_total{event_type="other",result="dropped"} 1
			surehook_published_events_total{event_type="other",result="new"} 1
			surehook_published_events_total{event_type="other",result="refused"} 1
		`},
	} {
		t.Run(c.name, func(t *testing.T) {
			endpoint := sendertest.NewRoundTripper(sendertest.Status(200), sendertest.Status(500), sendertest.Status(200))
			sys, _, registry := service(t, &senderprom.Config{EventTypes: c.types}, endpoint)
			ctx := t.Context()
			owner, _, err := sys.Registry.CreateSubscriber(ctx, sender.NewSubscriber{})
			require.NoError(t, err)
			_, err = sys.Registry.Subscribe(ctx, sender.NewSubscription{Subscriber: owner.ID, URL: "http://endpoint/"})
			require.NoError(t, err)
			keyed := event("order.paid", "1")
			keyed.IdempotencyKey = "k"
			for range 2 {
				_, err := sys.Publish(ctx, keyed)
				require.NoError(t, err)
			}
			_, err = sys.Dispatcher.RunOnce(ctx)
			require.NoError(t, err)
			_, err = sys.Publish(ctx, event("user.made", "2"))
			require.NoError(t, err)
			_, err = sys.Dispatcher.RunOnce(ctx)
			require.NoError(t, err)
			dropped := event("user.made", "3")
			dropped.Subscriber, dropped.IfSubscriberExists = "sub_nobody", true
			_, err = sys.Publish(ctx, dropped)
			require.NoError(t, err)
			_, err = sys.Publish(ctx, event("not a type", "4"))
			require.Error(t, err)

			require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(c.want), "surehook_attempts_total", "surehook_published_events_total"))
			require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
				# HELP surehook_backlog_deliveries Deliveries of active and closing subscriptions that have not ended, by the lane of the subscription.
				# TYPE surehook_backlog_deliveries gauge
				surehook_backlog_deliveries{lane="new"} 0
				surehook_backlog_deliveries{lane="probation"} 0
				surehook_backlog_deliveries{lane="proven"} 1
				# HELP surehook_database_up 1 if the totals could be read at this scrape; 0 if not: then they are left out.
				# TYPE surehook_database_up gauge
				surehook_database_up 1
				# HELP surehook_expanded_deliveries_total Deliveries that were made here of committed events.
				# TYPE surehook_expanded_deliveries_total counter
				surehook_expanded_deliveries_total 2
				# HELP surehook_expanded_events_total Committed events whose deliveries were made here.
				# TYPE surehook_expanded_events_total counter
				surehook_expanded_events_total 2
			`), "surehook_backlog_deliveries", "surehook_database_up", "surehook_expanded_events_total", "surehook_expanded_deliveries_total"))
			require.Equal(t, uint64(2), samples(t, registry, "surehook_first_attempt_seconds"))
			require.Equal(t, uint64(1), samples(t, registry, "surehook_delivered_seconds"))
			require.Equal(t, uint64(2), samples(t, registry, "surehook_attempt_seconds"))
			require.NotZero(t, samples(t, registry, "surehook_step_seconds"))

			delivered, _, err := sys.History.Deliveries(ctx, history.DeliveryQuery{Status: sender.StatusDelivered})
			require.NoError(t, err)
			require.NoError(t, sys.History.Redeliver(ctx, delivered[0].ID))
			_, err = sys.Dispatcher.RunOnce(ctx)
			require.NoError(t, err)
			require.Equal(t, uint64(3), samples(t, registry, "surehook_attempt_seconds"))
			require.Equal(t, uint64(1), samples(t, registry, "surehook_delivered_seconds"), "it had been delivered before")
			problems, err := testutil.GatherAndLint(registry)
			require.NoError(t, err)
			require.Empty(t, problems)
		})
	}
}

// samples adds up a histogram's counts.
func samples(t *testing.T, g prometheus.Gatherer, name string) (n uint64) {
	t.Helper()
	all, err := g.Gather()
	require.NoError(t, err)
	for _, family := range all {
		if family.GetName() == name {
			for _, m := range family.GetMetric() {
				n += m.GetHistogram().GetSampleCount()
			}
		}
	}
	return n
}

// The hooks alone tell rare things.
func TestHooks(t *testing.T) {
	metrics, err := senderprom.New(nil)
	require.NoError(t, err)
	ctx, now := t.Context(), time.Now()
	h := metrics.Hooks()
	h.TakenOver(ctx, 7)
	h.PutOff(ctx, dispatch.PutOff{Reason: dispatch.PutOffSecret})
	h.NetworkDown(ctx, now)
	h.ProxyDown(ctx, "eu", now)
	h.ProxyDown(ctx, "us", now)
	h.ProxyUp(ctx, "eu", now)
	h.Noticed(ctx, sender.Notice{Kind: sender.NoticeDisabled})
	h.Pruned(ctx, dispatch.Pruned{Events: 3, SubscriptionRollups: 5})
	h.Recorded(ctx, &dispatch.Recorded{Outcome: dispatch.Outcome{Lost: true}})
	step := dispatch.Stepped{Duration: time.Second, Err: errors.New("away")}
	step.OnWire[sender.LaneProven] = 4
	h.Stepped(ctx, step)
	for name, want := range map[string]string{
		"surehook_put_off_deliveries_total": "surehook_put_off_deliveries_total{reason=\"proxy\"} 0\nsurehook_put_off_deliveries_total{reason=\"secret\"} 1",
		"surehook_leases_taken_over_total":  "surehook_leases_taken_over_total 7", "surehook_network_down": "surehook_network_down 1",
		"surehook_network_outages_total": "surehook_network_outages_total 1", "surehook_lost_results_total": "surehook_lost_results_total 1",
		"surehook_proxy_down":          "surehook_proxy_down{proxy=\"eu\"} 0\nsurehook_proxy_down{proxy=\"us\"} 1",
		"surehook_notices_total":       `surehook_notices_total{kind="subscription.disabled"} 1`,
		"surehook_step_failures_total": "surehook_step_failures_total 1",
		"surehook_attempts_in_flight":  `surehook_attempts_in_flight{lane="proven"} 4`,
		"surehook_pruned_records_total": "surehook_pruned_records_total{record=\"event\"} 3\nsurehook_pruned_records_total{record=\"notice\"} 0\nsurehook_pruned_records_total{record=\"object\"} 0\n" +
			"surehook_pruned_records_total{record=\"replay\"} 0\nsurehook_pruned_records_total{record=\"rollup\"} 0\nsurehook_pruned_records_total{record=\"subscription\"} 0\nsurehook_pruned_records_total{record=\"subscription_rollup\"} 5",
	} {
		text, err := testutil.CollectAndFormat(metrics, expfmt.TypeTextPlain, name)
		require.NoError(t, err)
		require.Contains(t, string(text), want)
	}
	h.NetworkUp(ctx, now)
	require.NoError(t, testutil.CollectAndCompare(metrics, strings.NewReader("# HELP surehook_network_down 1 while our own network seems to be down, to this process; else 0.\n# TYPE surehook_network_down gauge\nsurehook_network_down 0\n"), "surehook_network_down"))
}

// away is a database that does not answer.
type away struct{ history.Store }

func (away) Counts(context.Context) (history.Counts, error) {
	return history.Counts{}, errors.New("the database is away")
}

func TestTotalsWithoutTheDatabase(t *testing.T) {
	h, err := history.New(away{}, nil)
	require.NoError(t, err)
	var log strings.Builder
	totals, err := senderprom.NewTotals(h, &senderprom.TotalsConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	require.Equal(t, 1, testutil.CollectAndCount(totals), "one value: that it is away")
	require.Contains(t, log.String(), "the database is away")
}

func TestRefuses(t *testing.T) {
	_, err := senderprom.New(&senderprom.Config{EventTypes: []string{"", "other"}})
	require.ErrorContains(t, err, "EventTypes[0]")
	require.ErrorContains(t, err, "EventTypes[1]")
	_, err = senderprom.New(&senderprom.Config{EventTypes: strings.Split(strings.Repeat("a.b ", 300), " ")[:250]})
	require.NoError(t, err, "a type that is repeated is one")
	_, err = senderprom.NewTotals(nil, &senderprom.TotalsConfig{Timeout: -1})
	require.ErrorContains(t, err, "needs a history")
	require.ErrorContains(t, err, "Timeout is -1ns")
}
