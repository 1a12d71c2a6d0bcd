package console_test

import (
	"bytes"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/catalogue/shop"
)

// ordered makes a subscription with all that a page says of an order, a dead letter that holds
// back, and a version that waits for it.
func (b *bed) ordered() (subscription, dead, waits string) {
	b.t.Helper()
	keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{1}, 32)})
	require.NoError(b.t, err)
	reg, err := sender.NewRegistry(b.store, keys, &sender.RegistryConfig{Now: b.clock, PayloadVersion: shop.Second})
	require.NoError(b.t, err)
	s, err := reg.Subscribe(b.t.Context(), sender.NewSubscription{
		Subscriber: "sub_ada", URL: "https://down.example.com/hooks", EventTypes: []string{"invoice.*"}, Filter: `{"or": [{"data.note": {"exists": true}}, {"data.amount": {"gte": 100}}, {"object.id": "<b>"}]}`,
		Settings: sender.Settings{Order: sender.OrderObject, HoldTries: 1, HoldFor: 90 * time.Minute, HoldDead: true},
	})
	require.NoError(b.t, err)
	b.publish("inv_7")
	b.run()
	b.publish("inv_7")
	b.run()
	list := b.deliveries(s.ID)
	require.Equal(b.t, []sender.Status{sender.StatusPending, sender.StatusDeadLettered}, []sender.Status{list[0].Status, list[1].Status})
	return s.ID, list[1].ID, list[0].ID
}

// An operator sees the order, the filter and the payload version of a subscription, what a
// delivery waits for, and can have the later versions go on.
func TestOrder(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	require.Contains(t, b.get("/subscriptions/"+b.good).text, "relaxed: what failed is tried again")
	subscription, dead, waits := b.ordered()
	p := b.get("/subscriptions/" + subscription)
	for _, says := range []string{
		"each version of an object after the earlier ones, held for at most 1 attempt, for at most 1h30m0s, behind dead letters too",
		`{&#34;object.id&#34;:&#34;&lt;b&gt;&#34;}`, "<dt>Payload version</dt><dd>" + shop.Second,
	} {
		require.Contains(t, p.text, says)
	}
	at := "/deliveries/" + dead
	require.Contains(t, b.get(at).text, `action="../deliveries/`+dead+`/pass-over"`)
	p = b.get("/deliveries/" + waits)
	require.Contains(t, p.text, `<a href="../deliveries/`+dead+`">The delivery that goes before it</a>`)
	require.NotContains(t, p.text, "/pass-over")
	require.Equal(t, http.StatusConflict, b.post("/deliveries/"+waits+"/pass-over", nil).status)
	require.Equal(t, http.StatusNotFound, b.post("/deliveries/dlv_never/pass-over", nil).status)
	require.Equal(t, http.StatusForbidden, b.post(at+"/pass-over", nil, "Sec-Fetch-Site", "cross-site").status)
	require.Contains(t, b.get(at).text, "/pass-over")

	b.done(b.post(at+"/pass-over", nil), at, "The later versions go on")
	require.Contains(t, b.logged(), `action="pass over" by=grace path=`+at)
	require.NotContains(t, b.get(at).text, "/pass-over")
	b.run()
	d, err := b.history.Delivery(t.Context(), waits)
	require.NoError(t, err)
	require.Equal(t, 1, d.AttemptCount)
}
