package telemetry_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/surehook/surehook/internal/canarytest"
	"github.com/surehook/surehook/sender"
)

// No secret, query, path, header or body is in a metric or a span, whether the endpoint
// takes the event, answers with what was sent, or cannot be reached; nor is what a stranger
// sends.
func TestCanaries(t *testing.T) {
	var cage canarytest.Cage
	bird := func(name string) string {
		text := "canary" + strings.ReplaceAll(name, " ", "") + "QzX7vK2m"
		cage.Add(name, []byte(text))
		return text
	}
	p := newPath(t, settings{sends: true})
	cage.Add("the signing secret", []byte(p.secret.Reveal()))
	query := "/" + bird("path") + "?token=" + bird("query")
	headers := map[string]string{"Authorization": "Bearer " + bird("header")}
	p.subscribe(t, query, headers)
	away, err := p.sys.Registry.Subscribe(t.Context(), sender.NewSubscription{Subscriber: p.owner.ID, URL: "http://user@127.0.0.1:1/" + query, Settings: sender.Settings{Headers: headers}})
	if err != nil { // the library may refuse the user
		away, err = p.sys.Registry.Subscribe(t.Context(), sender.NewSubscription{Subscriber: p.owner.ID, URL: "http://127.0.0.1:1/" + query, Settings: sender.Settings{Headers: headers}})
	}
	require.NoError(t, err)
	require.NotEmpty(t, away.ID)
	e := order(bird("object id"))
	e.Data, e.IdempotencyKey, e.KeyScope = map[string]string{"card": bird("body")}, bird("idempotency key"), bird("key scope")
	p.publish(t, e)
	p.answer = func(w http.ResponseWriter, r *http.Request) bool {
		http.Error(w, r.URL.String()+fmt.Sprint(r.Header)+bird("answer"), http.StatusInternalServerError)
		return true
	}
	again := order(bird("another object id"))
	p.publish(t, again)
	mistaken := order("1")
	mistaken.Type = "order paid " + bird("type that is none")
	_, err = p.sys.Publish(t.Context(), mistaken)
	require.Error(t, err)
	unknown := order("2")
	unknown.Subscriber = bird("subscriber that is none")
	_, err = p.sys.Publish(t.Context(), unknown)
	require.ErrorIs(t, err, sender.ErrNotFound)
	p.answer = nil
	for _, forge := range []func(h http.Header){
		func(h http.Header) { h.Set("Webhook-Id", bird("stranger's id")) },
		func(h http.Header) { h.Set("Traceparent", bird("stranger's trace")) },
		func(h http.Header) { h.Set("Baggage", "a="+bird("stranger's baggage")) },
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"?"+bird("stranger's query"), strings.NewReader(bird("stranger's body")))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Webhook-Signature", bird("stranger's signature"))
		forge(r.Header)
		res, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		res.Body.Close()
	}

	text := exposed(t, p)
	require.Contains(t, string(text), `error_class="status"`)
	require.Contains(t, string(text), `error_class="connect"`)
	require.Contains(t, string(text), `result="rejected"`)
	cage.RequireNone(t, "the metrics of Prometheus", text)

	var measured metricdata.ResourceMetrics
	require.NoError(t, p.reader.Collect(t.Context(), &measured))
	cage.RequireNone(t, "the metrics of OpenTelemetry", []byte(fmt.Sprintf("%+v", measured)))

	for _, s := range p.spans.Ended() {
		all := []any{s.Name(), s.Status(), s.Events(), s.SpanContext(), s.Parent(), s.Links()}
		for _, a := range s.Attributes() {
			all = append(all, string(a.Key), a.Value.AsInterface())
		}
		dump, err := json.Marshal(all)
		require.NoError(t, err)
		cage.RequireNone(t, "a span", append(dump, fmt.Sprintf("%+v", all)...))
	}
	require.GreaterOrEqual(t, len(p.spans.Ended()), 12)
}

// exposed is what Prometheus scrapes.
func exposed(t *testing.T, p *path) []byte {
	t.Helper()
	families, err := p.registry.Gather()
	require.NoError(t, err)
	var text bytes.Buffer
	for _, f := range families {
		_, err := expfmt.MetricFamilyToText(&text, f)
		require.NoError(t, err)
	}
	return text.Bytes()
}
