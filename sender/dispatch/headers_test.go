package dispatch_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/sendertest"
)

func TestHeadersOfAttempts(t *testing.T) {
	for of, want := range map[dispatch.HeadersOf][2]bool{ // of the attempt that fails, and of the one that succeeds
		"": {true, false}, dispatch.HeadersOfFailed: {true, false}, dispatch.HeadersOfAll: {true, true}, dispatch.HeadersOfNone: {},
	} {
		t.Run(string(of), func(t *testing.T) {
			b := bedtest.New(t)
			ep := sendertest.NewEndpoint(t, sendertest.Answer(503, http.Header{"X-Request-Id": {"req_7"}, "Via": {"1.1 the-owners-key"}}, ""), sendertest.Status(204))
			sub, _ := b.Subscribe("sub_a", ep.URL())
			_, err := b.Registry.Update(t.Context(), sub.ID, sender.SubscriptionChange{Settings: &sender.Settings{Headers: map[string]string{"X-Key": "the-owners-key"}}})
			require.NoError(t, err)
			b.Publish("sub_a")
			d := b.Dispatcher(dispatch.Config{Headers: of})
			_, err = d.RunOnce(t.Context())
			require.NoError(t, err)
			require.NoError(t, b.History.Redeliver(t.Context(), b.Delivery().ID))
			_, err = d.RunOnce(t.Context())
			require.NoError(t, err)

			attempts := b.Delivery().Attempts
			require.Len(t, attempts, 2)
			for i, posted := range ep.Requests() {
				kept := map[string]string{}
				for _, h := range attempts[i].Headers.Request() {
					kept[h.Name] = h.Value
				}
				if !want[i] {
					require.Empty(t, attempts[i].Headers)
					continue
				}
				require.Equal(t, "redacted", kept["X-Key"])
				require.Equal(t, "redacted", kept["Webhook-Signature"])
				require.Equal(t, "redacted", kept["Webhook-Hmac-Sha256"])
				for _, name := range []string{"User-Agent", "Content-Type", "Webhook-Id", "Webhook-Timestamp", "Webhook-Attempt"} {
					require.Equal(t, posted.Header.Get(name), kept[name], name)
				}
				require.NotEmpty(t, attempts[i].Headers.Answer())
			}
			if want[0] {
				answer := attempts[0].Headers.Answer()
				require.Contains(t, answer, sender.Header{Name: "X-Request-Id", Value: "req_7"})
				require.Contains(t, answer, sender.Header{Name: "Via", Value: "redacted"}, "the endpoint has sent it back")
			}
		})
	}
	_, err := dispatch.New(bedtest.New(t).Store, nil, &dispatch.Config{Headers: "some"})
	require.ErrorContains(t, err, `Headers is "some": it must be "failed", "all" or "none"`)
}
