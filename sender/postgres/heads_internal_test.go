package postgres

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/dispatch"
)

// A transaction fails if a head is not where it was locked, also if it is the only one.
func TestHeadsThatAreNotFoundAreNotStored(t *testing.T) {
	c := newTestCore(t)
	nowhere := &head{at: pgtype.TID{Valid: true}}
	for _, all := range [][]*head{{nowhere}, {nowhere, nowhere}} {
		err := c.write(t.Context(), func(w *work) error {
			b := w.batch(dispatch.Batch{})
			return w.send(b.updateHeads(all).rows(func(rows) error { return nil }))
		})
		require.ErrorContains(t, err, "division by zero", len(all))
	}
}

// A delivery whose subscription has lost its head since it was found keeps no other one from
// being redacted.
func TestRedactingWithoutAHead(t *testing.T) {
	c := newTestCore(t)
	n, err := c.cancelRedacted(context.Background(), []dispatch.DeliveryKey{{Event: 1, Subscription: 1}})
	require.NoError(t, err)
	require.Zero(t, n)
}
