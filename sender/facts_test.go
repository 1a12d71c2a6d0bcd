package sender_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/bedtest"
)

// A subscription cannot ask for facts in the order by which older ones end undelivered. One
// that has done so before can be changed otherwise.
func TestOrderLatestIsNotForFacts(t *testing.T) {
	b, ctx := bedtest.New(t), t.Context()
	_, _, err := b.Registry.CreateSubscriber(ctx, sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	latest := sender.NewSubscription{Subscriber: "sub_a", URL: "https://example.com/", Settings: sender.Settings{Order: sender.OrderLatest}}
	latest.EventTypes = []string{"invoice.*"}
	before, err := b.Registry.Subscribe(ctx, latest)
	require.NoError(t, err, "without a catalogue")

	_, err = sender.NewRegistry(b.Store, b.Keys, &sender.RegistryConfig{Facts: []string{"invoice.*"}})
	require.ErrorContains(t, err, `sender: RegistryConfig.Facts: "invoice.*": `)
	r, err := sender.NewRegistry(b.Store, b.Keys, &sender.RegistryConfig{Facts: []string{"invoice.voided", "payment.failed"}})
	require.NoError(t, err)
	for _, c := range []struct {
		types []string
		fact  string
		asked string
	}{
		{nil, "invoice.voided", "*"},
		{[]string{"invoice.*"}, "invoice.voided", "invoice.*"},
		{[]string{"invoice.paid", "payment.failed"}, "payment.failed", "payment.failed"},
		{[]string{"invoice.paid", "invoice.void.*"}, "", ""},
	} {
		latest.EventTypes = c.types
		s, err := r.Subscribe(ctx, latest)
		if c.fact == "" {
			require.NoError(t, err)
			_, err = r.Update(ctx, s.ID, sender.SubscriptionChange{EventTypes: []string{"payment.failed"}})
			require.ErrorIs(t, err, sender.ErrInvalid, "it asks for one later")
			continue
		}
		require.ErrorIs(t, err, sender.ErrInvalid)
		fields := sender.FieldErrors(err)
		require.Len(t, fields, 1)
		require.Equal(t, "order", fields[0].Field)
		has := ""
		if c.asked != c.fact {
			has = `; "` + c.asked + `" has it`
		}
		require.Equal(t, `in the order "latest" a newer event replaces older ones, and each event of the type "`+c.fact+`" counts: choose another order, or event types without this one`+has, fields[0].Reason)
	}

	text := "something else"
	_, err = r.Update(ctx, before.ID, sender.SubscriptionChange{Description: &text})
	require.NoError(t, err)
	for _, order := range []sender.Order{sender.OrderObject, sender.OrderRelaxed} {
		s, err := r.Update(ctx, before.ID, sender.SubscriptionChange{Settings: &sender.Settings{Order: order}})
		require.NoError(t, err)
		require.Equal(t, order, s.Settings.Order)
	}
	_, err = r.Update(ctx, before.ID, sender.SubscriptionChange{Settings: &sender.Settings{Order: sender.OrderLatest}})
	require.ErrorIs(t, err, sender.ErrInvalid)
}
