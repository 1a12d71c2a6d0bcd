package history_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/memory"
)

// publishWith publishes an event with data and returns its id.
func publishWith(t *testing.T, b *bedtest.Bed, eventType, subscriber, data string) string {
	t.Helper()
	ref, err := b.Publisher.Publish(t.Context(), sender.Event{
		Type: eventType, Object: sender.Object{Type: "invoice", ID: "1"}, Subscriber: subscriber, Data: json.RawMessage(data),
	})
	require.NoError(t, err)
	return ref.ID
}

func TestWhyOf(t *testing.T) {
	b, ctx := bedtest.New(t), t.Context()
	early := publishWith(t, b, "invoice.paid", "", `{"status":"paid"}`)
	b.Subscribe("sub_a", "http://endpoint/")
	b.Subscribe("sub_b", "http://endpoint/")
	s, err := b.Registry.Subscribe(ctx, sender.NewSubscription{
		Subscriber: "sub_a", URL: "http://endpoint/", EventTypes: []string{"invoice.*"}, Filter: `{"data.status":"paid","data.amount":{"gte":100}}`,
	})
	require.NoError(t, err)
	open := publishWith(t, b, "invoice.paid", "", `{"status":"open"}`)
	paid := publishWith(t, b, "invoice.paid", "sub_a", `{"status":"paid","amount":100}`)
	other := publishWith(t, b, "order.paid", "", `{}`)
	theirs := publishWith(t, b, "invoice.paid", "sub_b", `{}`)
	gone := publishWith(t, b, "invoice.paid", "", `{"status":"open"}`)
	_, _, err = b.Store.Step(ctx, dispatch.ExpandParams{Events: 100, Deliveries: 100}, dispatch.Batch{})
	require.NoError(t, err)
	late := publishWith(t, b, "invoice.paid", "", `{"status":"paid","amount":1e2}`)

	for _, c := range []struct {
		event  string
		reason history.Reason
		says   string
	}{
		{open, history.WhyFiltered, `Not delivered: the subscription's filter does not match. data.status = "paid" does not hold: it is "open".`},
		{paid, history.WhyDue, "Due since"},
		{other, history.WhyNotAsked, "Not delivered: the subscription does not ask for the type order.paid; it asks for invoice.*."},
		{theirs, history.WhyNotAddressed, "Not delivered: the event is addressed to another subscriber."},
		{late, history.WhyNoDelivery, "Not delivered: as the subscription is now, it would get the event."},
	} {
		why, err := b.History.WhyOf(ctx, c.event, s.ID)
		require.NoError(t, err)
		require.Equal(t, c.reason, why.Reason, why.Sentence)
		require.True(t, strings.HasPrefix(why.Sentence, c.says), why.Sentence)
		require.Equal(t, sender.SubscriptionActive, why.Subscription)
	}
	_, err = b.History.WhyOf(ctx, "evt_unknown", s.ID)
	require.ErrorIs(t, err, sender.ErrNotFound)
	_, err = b.History.WhyOf(ctx, early, "wsub_unknown")
	require.ErrorIs(t, err, sender.ErrNotFound)
	for _, nobodys := range []string{"", "wsub_unknown"} { // an empty id is not all of them
		_, err = b.History.WhyOf(ctx, open, nobodys)
		require.ErrorIs(t, err, sender.ErrNotFound)
		_, err = b.History.ForSubscriber("sub_b").WhyOf(ctx, open, nobodys)
		require.ErrorIs(t, err, sender.ErrNotFound)
	}
	_, err = b.History.ForSubscriber("sub_a").WhyOf(ctx, theirs, s.ID)
	require.ErrorIs(t, err, sender.ErrNotFound, "what is another's is not there")
	_, err = b.History.ForSubscriber("sub_b").WhyOf(ctx, open, s.ID)
	require.ErrorIs(t, err, sender.ErrNotFound, "likewise a subscription")

	_, err = b.Store.Redact(ctx, history.RedactParams{Object: sender.Object{Type: "invoice", ID: "1"}, Limit: 10})
	require.NoError(t, err)
	why, err := b.History.WhyOf(ctx, gone, s.ID)
	require.NoError(t, err)
	require.Equal(t, history.WhyRedacted, why.Reason)
	require.NotContains(t, why.Sentence, "open")
}

// An event that is addressed to a subscription gets there whatever its filter says, and one that
// was redacted before it was expanded gets nowhere.
func TestWhyOfNeitherFilteredNorExpanded(t *testing.T) {
	b, ctx := bedtest.New(t), t.Context()
	b.Subscribe("sub_a", "http://endpoint/")
	filtered, err := b.Registry.Subscribe(ctx, sender.NewSubscription{Subscriber: "sub_a", URL: "http://endpoint/", Filter: `{"data.status":"paid"}`})
	require.NoError(t, err)
	all, err := b.Registry.Subscribe(ctx, sender.NewSubscription{Subscriber: "sub_a", URL: "http://endpoint/"})
	require.NoError(t, err)
	about := sender.Object{Type: "invoice", ID: "1"}
	test, err := b.Publisher.Publish(ctx, sender.Event{Type: "invoice.test", Object: about, Subscriber: "sub_a", Subscription: filtered.ID, Data: map[string]string{"status": "open"}})
	require.NoError(t, err)
	why, err := b.History.WhyOf(ctx, test.ID, filtered.ID)
	require.NoError(t, err)
	require.Equal(t, history.WhyNoDelivery, why.Reason, why.Sentence)
	require.Contains(t, why.Sentence, "it would get the event. The event is not expanded yet")

	open := publishWith(t, b, "invoice.paid", "", `{"status":"paid"}`)
	_, err = b.Store.Redact(ctx, history.RedactParams{Object: about, Limit: 10})
	require.NoError(t, err)
	_, _, err = b.Store.Step(ctx, dispatch.ExpandParams{Events: 100, Deliveries: 100}, dispatch.Batch{})
	require.NoError(t, err)
	for id, says := range map[string]string{all.ID: "Not delivered: the event was redacted, so nothing of it is left to send.", filtered.ID: "Not delivered: the event was redacted, so no filter matches it."} {
		why, err := b.History.WhyOf(ctx, open, id)
		require.NoError(t, err)
		require.Equal(t, []any{history.WhyRedacted, says}, []any{why.Reason, why.Sentence})
	}
}

// A subscription that is closing gets what was committed before, and nothing later.
func TestWhyOfAClosingSubscription(t *testing.T) {
	b, ctx := bedtest.New(t), t.Context()
	b.Subscribe("sub_a", "http://endpoint/")
	s, err := b.Registry.Subscribe(ctx, sender.NewSubscription{Subscriber: "sub_a", URL: "http://endpoint/", Filter: `{"data.status":"paid"}`})
	require.NoError(t, err)
	before := publishWith(t, b, "invoice.paid", "", `{"status":"paid"}`)
	_, _, err = b.Store.Step(ctx, dispatch.ExpandParams{Events: 100, Deliveries: 100}, dispatch.Batch{})
	require.NoError(t, err)
	require.NoError(t, b.Registry.Close(ctx, s.ID))
	later := publishWith(t, b, "invoice.paid", "", `{"status":"paid"}`)
	open := publishWith(t, b, "invoice.paid", "", `{"status":"open"}`)
	_, _, err = b.Store.Step(ctx, dispatch.ExpandParams{Events: 100, Deliveries: 100}, dispatch.Batch{})
	require.NoError(t, err)
	for event, want := range map[string]struct {
		reason history.Reason
		says   string
	}{
		before: {history.WhyDue, "Due since"},
		later:  {history.WhyClosing, "Not delivered: the subscription is closing: it gets what was published before that, and nothing later."},
		open:   {history.WhyFiltered, "Not delivered: the subscription's filter does not match."},
	} {
		why, err := b.History.WhyOf(ctx, event, s.ID)
		require.NoError(t, err)
		require.Equal(t, want.reason, why.Reason, why.Sentence)
		require.True(t, strings.HasPrefix(why.Sentence, want.says), why.Sentence)
		require.Equal(t, sender.SubscriptionClosing, why.Subscription)
	}
}

// The filter of a subscription that is pinned to an older payload version is asked about that,
// here as in an expansion.
func TestFiltersAndPayloadVersions(t *testing.T) {
	b, ctx := bedtest.New(t), t.Context()
	b.Subscribe("sub_a", "http://endpoint/")
	convert := func(eventType, _, _ string, data json.RawMessage) (string, json.RawMessage, error) {
		if eventType == "invoice.odd" {
			return "", nil, errors.New("a secret")
		}
		return "2025-03-01", bytes.Replace(data, []byte("amount"), []byte("total"), 1), nil
	}
	h, err := history.New(b.Store, &history.Config{Convert: convert})
	require.NoError(t, err)
	ids := map[string]string{}
	for i := range 3 {
		for _, eventType := range []string{"invoice.paid", "invoice.odd"} {
			ref, err := b.Publisher.Publish(ctx, sender.Event{
				Type: eventType, Object: sender.Object{Type: "invoice", ID: "1"}, PayloadVersion: "2026-11-25", Data: map[string]int{"amount": i},
			})
			require.NoError(t, err)
			ids[eventType] = ref.ID
		}
	}
	registry, err := sender.NewRegistry[*memory.Tx](b.Store, b.Keys, &sender.RegistryConfig{Network: bedtest.Private, PayloadVersion: "2026-11-25", Now: func() time.Time { return time.Now().Add(-time.Hour) }})
	require.NoError(t, err)
	for _, c := range []struct {
		pinned, filter string
		reason         history.Reason
		says           string
		preview        [2]int // of six
	}{
		{"2025-03-01", `{"data.total":2}`, history.WhyNoDelivery, "as the subscription is now, it would get the event", [2]int{1, 3}},
		{"2025-03-01", `{"data.amount":2}`, history.WhyFiltered, "data.amount = 2 does not hold", [2]int{0, 3}},
		{"2026-11-25", `{"data.amount":2}`, history.WhyNoDelivery, "as the subscription is now, it would get the event", [2]int{2, 0}},
		{"2026-11-25", `{"data.total":2}`, history.WhyFiltered, "data.total = 2 does not hold", [2]int{0, 0}},
	} {
		s, err := registry.Subscribe(ctx, sender.NewSubscription{Subscriber: "sub_a", URL: "http://endpoint/", Filter: c.filter, Settings: sender.Settings{PayloadVersion: c.pinned}})
		require.NoError(t, err)
		why, err := h.WhyOf(ctx, ids["invoice.paid"], s.ID)
		require.NoError(t, err)
		require.Equal(t, c.reason, why.Reason, why.Sentence)
		require.Contains(t, why.Sentence, c.says)
		p, err := h.Preview(ctx, history.PreviewQuery{Subscriber: "sub_a", EventTypes: []string{"invoice.*"}, Filter: c.filter, PayloadVersion: &c.pinned})
		require.NoError(t, err)
		require.Equal(t, c.preview, [2]int{p.Matching, p.Unmade})
		require.Equal(t, 6, p.Events)
		if c.pinned == "2025-03-01" {
			for says, past := range map[string]*history.History{ids["invoice.odd"]: h, ids["invoice.paid"]: b.History} { // which has no converter
				why, err = past.WhyOf(ctx, says, s.ID)
				require.NoError(t, err)
				require.Equal(t, history.WhyNoDelivery, why.Reason)
				require.Contains(t, why.Sentence, "published in the payload version 2026-11-25, the subscription gets 2025-03-01, and the one could not be made into the other")
				require.NotContains(t, why.Sentence, "secret")
			}
		}
	}
	oldest, wrong := "", "newest"
	p, err := h.Preview(ctx, history.PreviewQuery{EventTypes: []string{"invoice.paid"}, Filter: `{"data.total":2}`, PayloadVersion: &oldest})
	require.NoError(t, err)
	require.Equal(t, 1, p.Matching)
	p, err = h.Preview(ctx, history.PreviewQuery{EventTypes: []string{"invoice.paid"}, Filter: `{"data.amount":2}`})
	require.NoError(t, err)
	require.Equal(t, 1, p.Matching, "as published")
	_, err = h.Preview(ctx, history.PreviewQuery{Filter: `{"data.amount":2}`, PayloadVersion: &wrong})
	require.ErrorContains(t, err, `payload version "newest": it must be a date`)
}

// A notice about a subscription is not sent to it, unless it asks for exactly that type.
func TestWhyOfANotice(t *testing.T) {
	b, ctx := bedtest.New(t), t.Context()
	b.Subscribe("sub_a", "http://endpoint/")
	s, err := b.Registry.Subscribe(ctx, sender.NewSubscription{Subscriber: "sub_a", URL: "http://endpoint/"})
	require.NoError(t, err)
	about := sender.Notice{ID: "ntc_1", Kind: sender.NoticeFailing, Subscriber: "sub_a", Subscription: s.ID, CreatedAt: time.Now()}
	_, _, err = b.Store.Step(ctx, dispatch.ExpandParams{}, dispatch.Batch{Notices: []sender.Notice{about}, Announce: sender.Notice.Draft})
	require.NoError(t, err)
	_, _, err = b.Store.Step(ctx, dispatch.ExpandParams{Events: 100, Deliveries: 100}, dispatch.Batch{})
	require.NoError(t, err)
	events, _, err := b.History.Events(ctx, history.EventQuery{Type: "subscription.failing"})
	require.NoError(t, err)
	require.Len(t, events, 1)
	why, err := b.History.WhyOf(ctx, events[0].ID, s.ID)
	require.NoError(t, err)
	require.Equal(t, history.WhyNotAsked, why.Reason)
	require.Equal(t, "Not delivered: the event tells of this subscription itself, which gets that only if it asks for exactly the type subscription.failing; it asks for *.", why.Sentence)
}

func TestPreview(t *testing.T) {
	b, ctx := bedtest.New(t), t.Context()
	b.Subscribe("sub_a", "http://endpoint/")
	b.Subscribe("sub_b", "http://endpoint/")
	for i := range 10 {
		publishWith(t, b, "invoice.paid", []string{"sub_a", "sub_b", ""}[i%3], fmt.Sprintf(`{"n":%d}`, i))
		publishWith(t, b, "order.paid", "", `{"n":9}`)
	}
	q := history.PreviewQuery{Subscriber: "sub_a", EventTypes: []string{"invoice.*"}, Filter: `{"data.n":{"gte":5}}`}
	p, err := b.History.Preview(ctx, q)
	require.NoError(t, err)
	require.False(t, p.Since.IsZero())
	require.Equal(t, 7, p.Events, "0, 2, 3, 5, 6, 8, 9")
	require.Equal(t, 4, p.Matching, "5, 6, 8, 9")
	require.False(t, p.More)

	q.Events = 3
	p, err = b.History.ForSubscriber("sub_a").Preview(ctx, q)
	require.NoError(t, err)
	require.Equal(t, []any{3, 3, true}, []any{p.Events, p.Matching, p.More}, "6, 8, 9")

	for _, q := range []history.PreviewQuery{{Filter: ""}, {Filter: `{"x":1}`}, {Filter: `{"data.x":1}`, Events: 201}, {Filter: `{"data.x":1}`, EventTypes: []string{"a*"}}} {
		_, err := b.History.Preview(ctx, q)
		require.ErrorIs(t, err, sender.ErrInvalid, "%+v", q)
	}
	_, err = b.History.ForSubscriber("").Preview(ctx, q)
	require.ErrorIs(t, err, sender.ErrInvalid)
}
