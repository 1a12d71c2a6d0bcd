package dispatch_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/bedtest"
)

// The dispatcher reports the deliveries that it makes, and its results carry the data for
// the rollups.
func TestDispatchIsRolledUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		b.Subscribe("sub_1", "http://one.example/")
		b.Subscribe("sub_1", "http://two.example/")
		b.Publish("sub_1")
		time.Sleep(3 * time.Second) // nobody dispatches yet
		var expanded []dispatch.Expanded
		d := b.Dispatcher(dispatch.Config{
			Hooks: dispatch.Hooks{Expanded: func(_ context.Context, x dispatch.Expanded) { expanded = append(expanded, x) }},
			UnguardedTransport: bedtest.TransportFunc(func(r *http.Request) (*http.Response, error) {
				time.Sleep(time.Second)
				if r.URL.Host == "two.example" {
					return &http.Response{StatusCode: 500, Body: http.NoBody}, nil
				}
				return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
			}),
		})
		_, err := d.RunOnce(t.Context())
		require.NoError(t, err)
		require.Equal(t, []dispatch.Expanded{{Events: 1, Deliveries: 2}}, expanded)

		all, err := b.History.Rollups(t.Context(), time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
		require.NoError(t, err)
		require.Len(t, all, 1)
		r := all[0]
		require.Equal(t, []int64{1, 2, 1, 1}, []int64{r.Published, r.Deliveries, r.Delivered, r.Failed})
		require.Equal(t, map[sender.Class]int64{sender.ClassStatus: 1}, r.Failures)
		require.Equal(t, []int64{2, 1}, []int64{r.FirstAttempt.Count(), r.Success.Count()})
		require.GreaterOrEqual(t, r.FirstAttempt.Quantile(0.01), 3*time.Second)
		require.InDelta(t, 4.0, r.Success.Longest().Seconds(), 0.1)
	})
}
