package sender_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/filter"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/memory"
)

func TestFilterIsChecked(t *testing.T) {
	r, ctx := guarded(t, nil), t.Context()
	n := sender.NewSubscription{Subscriber: "sub_a", URL: "https://example.com/", Filter: ` { "data.status" : {"eq": "paid"} } `}
	s, err := r.Subscribe(ctx, n)
	require.NoError(t, err)
	require.Equal(t, `{"data.status":"paid"}`, s.Filter.String(), "in one form")

	// All that is wrong is said, field by field, and nothing is changed.
	bad := `{"status":"paid","data.x":{"gt":true}}`
	n.Filter = bad
	_, err = r.Subscribe(ctx, n)
	require.ErrorIs(t, err, sender.ErrInvalid)
	all := sender.FieldErrors(err)
	require.Len(t, all, 2)
	require.Equal(t, "filter", all[0].Field)
	require.Contains(t, all[0].Reason, `a path begins with "data."`)
	require.Equal(t, `sender: invalid subscription: filter: ["data.x"].gt: it must be a number or a string: nothing else is less or greater`, all[1].Error())
	_, err = r.Update(ctx, s.ID, sender.SubscriptionChange{Filter: &bad})
	require.ErrorIs(t, err, sender.ErrInvalid)

	// A field that is not named stays; "" removes the filter.
	text := "else"
	changed, err := r.Update(ctx, s.ID, sender.SubscriptionChange{Description: &text})
	require.NoError(t, err)
	require.True(t, changed.Filter.Equal(s.Filter))
	none := ""
	changed, err = r.Update(ctx, s.ID, sender.SubscriptionChange{Filter: &none})
	require.NoError(t, err)
	require.Nil(t, changed.Filter)
	stored, err := r.Subscription(ctx, s.ID)
	require.NoError(t, err)
	require.Nil(t, stored.Filter)
}

// A stored filter that cannot be read is not lost by a change of something else.
func TestUnreadableFilterStays(t *testing.T) {
	b, ctx := bedtest.New(t), t.Context()
	s, _ := b.Subscribe("sub_a", "http://endpoint/")
	s.Filter = filter.Read(`{"data.x":{"later":1}}`)
	require.NoError(t, b.Store.InTx(ctx, func(tx *memory.Tx) error { return b.Store.UpdateSubscriptionTx(ctx, tx, s) }))
	r, text := b.Registry, "else"
	_, err := r.Update(ctx, s.ID, sender.SubscriptionChange{Description: &text})
	require.ErrorIs(t, err, sender.ErrInvalid)
	require.ErrorContains(t, err, "give it another filter, or none")
	right := `{"data.x":1}`
	changed, err := r.Update(ctx, s.ID, sender.SubscriptionChange{Filter: &right})
	require.NoError(t, err)
	require.Equal(t, right, changed.Filter.String())
}
