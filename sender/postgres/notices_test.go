package postgres_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/signing"
)

// A producer that publishes about a subscription and leaves its transaction open does
// not hold up notices about that subscription.
func TestNoticesMeetNoLockOfACaller(t *testing.T) {
	p := newPlace(t)
	s := p.store(t)
	register(t, s, 1, 1, sender.Settings{})
	keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte("1"), 32)})
	require.NoError(t, err)
	reg, err := sender.NewRegistry(s, keys, nil)
	require.NoError(t, err)
	_, err = reg.RevokeSecret(t.Context(), subscriberID(0), signing.Secret{})
	require.NoError(t, err)
	publish(t, s, 5, 1) // a subscription is warned of after five failures

	pub, err := sender.NewPublisher(s, nil)
	require.NoError(t, err)
	tx := p.begin(t, pgx.ReadCommitted)
	for _, object := range []string{"subscription", "delivery", "network"} {
		e := sender.Event{Type: object + ".updated", Object: sender.Object{Type: object, ID: subscriptionID(0, 0)}}
		_, err = pub.PublishTx(t.Context(), tx, e)
		require.NoError(t, err)
		e.Object.Type = "surehook." + object
		_, err = pub.PublishTx(t.Context(), tx, e)
		require.ErrorIs(t, err, sender.ErrInvalidEvent)
	}

	d, err := dispatch.New(s, keys, &dispatch.Config{
		Policy: dispatch.Policy{DisableAfter: time.Nanosecond},
		UnguardedTransport: roundTripper(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusInternalServerError, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
		}),
	})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stats, err := d.RunOnce(ctx)
	require.NoError(t, err)
	require.Equal(t, 5, stats.Failed)
	require.Equal(t, 1, p.count(t, `SELECT count(*) FROM {}.surehook_notices WHERE kind = 'subscription.failing'`))
	require.Equal(t, 1, p.count(t, `SELECT count(*) FROM {}.surehook_events WHERE notice AND object_type = 'surehook.subscription'`))
}
