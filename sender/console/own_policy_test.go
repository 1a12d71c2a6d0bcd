package console_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/console"
	"github.com/surehook/surehook/sender/dispatch"
)

// A subscription's page says when it is tried and disabled: by its own policy if it has one.
func TestOwnPolicy(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	bounds := sender.PolicyBounds{Allowed: true, Never: true}
	keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{1}, 32)})
	require.NoError(t, err)
	reg, err := sender.NewRegistry(b.store, keys, &sender.RegistryConfig{Now: b.clock, OwnPolicies: bounds})
	require.NoError(t, err)
	made := func(s sender.Settings) string {
		sub, err := reg.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_ada", URL: "https://bad.example.com/own", EventTypes: []string{"invoice.*"}, Settings: s})
		require.NoError(t, err)
		return sub.ID
	}
	own := made(sender.Settings{RetryDelays: []time.Duration{90 * time.Second, time.Hour}, Horizon: 150 * time.Minute, DisableAfter: 10 * time.Hour, Gone: sender.GoneStops})
	never := made(sender.Settings{DisableAfter: sender.NeverDisable})
	b.publish("inv_8")
	b.run()
	pages, err := console.New(b.backend(), b.authorize, &console.Config{
		Now: b.clock, Policy: dispatch.Policy{Own: bounds}.Of, Logger: slog.New(slog.NewTextHandler(b, nil)),
	})
	require.NoError(t, err)
	effective := func(id string) string {
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/subscriptions/"+id, nil))
		require.Equal(t, http.StatusOK, w.Code)
		return w.Body.String()
	}
	asked := func(id string) string { return b.get("/subscriptions/" + id).text }

	b.pass(5 * time.Hour)
	page := effective(own)
	for _, says := range []string{
		"<dt>Tried</dt><dd class=\"wraps\">5 times: at once, then after 1m30s, 1h1m30s, 2h1m30s, 2h30m</dd>", "<dt>Given up</dt><dd class=\"wraps\">2h30m after the first attempt",
		"after failing for 10h<", "<dt>410 Gone</dt><dd class=\"wraps\">stops it", "<dt>Policy</dt><dd class=\"wraps\">its own",
		"50 % of the way: it is disabled on", b.subscription(own).Health.FailingSince.Add(10 * time.Hour).UTC().Format(time.RFC3339),
	} {
		require.Contains(t, page, says)
	}
	page = effective(never)
	require.Contains(t, page, "never, however long it fails")
	require.NotContains(t, page, "it is disabled on")
	page = effective(b.good)
	require.Contains(t, page, "11 times: at once, then after 1m, 6m, 36m, 2h36m, 14h36m, 26h36m, 38h36m, 50h36m, 62h36m, 72h<")
	require.NotContains(t, page, "<dt>Policy</dt>")

	page = asked(own)
	require.Contains(t, page, "after 1m30s, 1h, the last one repeated")
	require.Contains(t, page, "2h30m after the first attempt")
	require.NotContains(t, asked(b.good), "<dt>Tried</dt>")
}
