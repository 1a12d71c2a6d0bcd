package postgres_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// Settings that cannot be read harm their own subscription alone, and new ones mend it.
func TestSettingsThatCannotBeRead(t *testing.T) {
	keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte("1"), 32)})
	require.NoError(t, err)
	for _, stored := range []string{`{"Rate": {"per_second": 5}}`, `{`} {
		p := newPlace(t)
		s := p.store(t)
		reg, err := sender.NewRegistry(s, keys, &sender.RegistryConfig{Network: sender.Network{AllowPrivateNetworks: true}})
		require.NoError(t, err)
		var subs []string
		for i := range 2 {
			_, _, err = reg.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: subscriberID(i)})
			require.NoError(t, err)
			sub, err := reg.Subscribe(t.Context(), sender.NewSubscription{Subscriber: subscriberID(i), URL: "http://127.0.0.1:1/", EventTypes: []string{"subscriber.*"}})
			require.NoError(t, err)
			subs = append(subs, sub.ID)
		}
		p.exec(t, `UPDATE {}.surehook_subscriptions SET settings = $1, version = version + 1 WHERE id = $2`, stored, subs[0])
		publish(t, s, 20, 2)
		var log bytes.Buffer
		d, err := dispatch.New(s, keys, &dispatch.Config{UnguardedTransport: answering, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		stats, err := d.RunOnce(t.Context())
		require.NoError(t, err)
		require.Equal(t, 10, stats.Delivered, "those of the other one")
		require.Equal(t, 1, strings.Count(log.String(), "cannot be read by this release"), log.String())
		require.Contains(t, log.String(), subs[0])

		list, err := reg.Subscriptions(t.Context(), "", "", 10)
		require.NoError(t, err)
		require.Len(t, list, 2)
		require.Error(t, list[0].Settings.Unreadable())
		text := "mine"
		_, err = reg.Update(t.Context(), subs[0], sender.SubscriptionChange{Description: &text})
		require.ErrorIs(t, err, sender.ErrInvalid, "it would lose them")
		_, err = reg.Update(t.Context(), subs[0], sender.SubscriptionChange{Settings: &sender.Settings{MaxInFlight: 2}})
		require.NoError(t, err)
		sub, err := reg.Subscription(t.Context(), subs[0])
		require.NoError(t, err)
		require.NoError(t, sub.Settings.Unreadable())
		require.Equal(t, 2, sub.Settings.MaxInFlight)
	}
}

// A change of a subscription keeps settings that a later release has added.
func TestUnknownSettingsAreKept(t *testing.T) {
	keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte("1"), 32)})
	require.NoError(t, err)
	p := newPlace(t)
	s := p.store(t)
	register(t, s, 1, 1, sender.Settings{MaxInFlight: 3})
	reg, err := sender.NewRegistry(s, keys, nil)
	require.NoError(t, err)
	p.exec(t, `UPDATE {}.surehook_subscriptions SET settings = jsonb_set(settings::jsonb, '{Burst}', '{"a": [1]}')::text`)
	text := "mine"
	for _, c := range []sender.SubscriptionChange{
		{Description: &text}, {Settings: &sender.Settings{Rate: 3}}, {EditSettings: func(s *sender.Settings) { *s = sender.Settings{Rate: 2} }},
	} {
		_, err = reg.Update(t.Context(), subscriptionID(0, 0), c)
		require.NoError(t, err)
		require.Equal(t, 1, p.count(t, `SELECT count(*) FROM {}.surehook_subscriptions WHERE settings::jsonb -> 'Burst' = '{"a": [1]}'`))
	}
	require.Equal(t, 1, p.count(t, `SELECT count(*) FROM {}.surehook_subscriptions WHERE (settings::jsonb ->> 'Rate')::float = 2 AND (settings::jsonb ->> 'MaxInFlight')::int = 0`))
}

// While somebody is changing a subscription, 410 Gone cannot disable it. Then the endpoint is
// asked again after a delay, even if that was the last attempt of its schedule.
func TestGoneWhileTheSubscriptionIsChanged(t *testing.T) {
	p := newPlace(t)
	s := p.store(t)
	register(t, s, 1, 1, sender.Settings{Order: sender.OrderObject, HoldTries: 1, Gone: sender.GoneStops})
	publish(t, s, 1, 1)
	expandAll(t, s)
	step := func(results ...dispatch.Result) dispatch.Claims {
		_, out, err := s.Step(t.Context(), dispatch.ExpandParams{}, dispatch.Batch{Decide: dispatch.Policy{}.Decide, Claim: claims(1), Results: results})
		require.NoError(t, err)
		return out
	}
	require.NoError(t, s.InTx(t.Context(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `SELECT 1 FROM "`+p.schema+`".surehook_subscriptions FOR UPDATE`); err != nil {
			return err
		}
		c := step().Claimed[0]
		out := step(dispatch.Result{Key: c.Key, Token: c.Token, Number: c.Number, StartedAt: c.At, Class: sender.ClassStatus, StatusCode: 410})
		require.Equal(t, sender.StatusAwaitingRetry, out.Recorded[0].Decision.Status)
		require.Empty(t, out.Recorded[0].Decision.Disable)
		require.Empty(t, out.Claimed, "it is asked again at once")
		return nil
	}))
}
