package account_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/examples/recipes/recipetest"
	"github.com/surehook/surehook/receiver/receivertest"
)

// Two payments into one account, the later one first, are both counted, each once.
func TestPaymentsInReverseOrder(t *testing.T) {
	bed := recipetest.New(t)
	snd := receivertest.NewSender(t, bed.Secret, nil)
	for _, version := range []int64{2, 1} {
		ev := receivertest.NewEvent("invoice", "in_1", version)
		ev.Type, ev.Data = "invoice.paid", map[string]any{"account": "acc_1", "cents": 100, "payer": "Ada"}
		for range 2 {
			require.Equal(t, http.StatusOK, snd.Request(ev).Serve(bed.App.Handler()).Status)
		}
	}
	cents, err := bed.App.Paid(t.Context(), "acc_1")
	require.NoError(t, err)
	require.Equal(t, int64(200), cents)
}
