package sender_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/sendertest"
)

// The end of an old secret can be put off, for no longer than an overlap may last.
func TestExtendSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		endpoint := sendertest.NewRoundTripper()
		_, first := b.Subscribe("sub_a", "http://endpoint/")
		_, err := b.Registry.ExtendSecret(t.Context(), "sub_a", time.Now().Add(time.Hour))
		require.ErrorIs(t, err, sender.ErrInvalid)
		require.ErrorContains(t, err, "no older one whose end could be put off")

		began := time.Now().UTC()
		second, until, err := b.Registry.RotateSecret(t.Context(), "sub_a", &sender.Rotation{Overlap: time.Hour})
		require.NoError(t, err)
		time.Sleep(30 * time.Minute)
		extended, err := b.Registry.ExtendSecret(t.Context(), "sub_a", until.Add(24*time.Hour+1))
		require.NoError(t, err)
		require.Equal(t, until.Add(24*time.Hour), extended, "it is what all databases store")
		time.Sleep(time.Until(extended) - time.Second) // a step takes time, too
		d := b.Dispatcher(dispatch.Config{UnguardedTransport: endpoint})
		b.Publish("sub_a")
		_, err = d.RunOnce(t.Context())
		require.NoError(t, err)
		signedBy(t, endpoint.Requests()[0], second, first)

		latest := began.Add(30 * 24 * time.Hour)
		list, err := b.Registry.Secrets(t.Context(), "sub_a")
		require.NoError(t, err)
		require.Equal(t, []time.Time{{}, latest}, []time.Time{list[0].LatestEnd, list[1].LatestEnd})
		before := sealed(b, "sub_a")
		for _, until := range []time.Time{{}, time.Now(), until, extended} {
			end, err := b.Registry.ExtendSecret(t.Context(), "sub_a", until)
			require.NoError(t, err)
			require.Equal(t, extended, end, "it ends later than at %s already", until)
		}
		for _, until := range []time.Time{latest.Add(time.Microsecond), latest.Add(24 * time.Hour)} {
			_, err = b.Registry.ExtendSecret(t.Context(), "sub_a", until)
			require.ErrorIs(t, err, sender.ErrInvalid, until)
			require.ErrorContains(t, err, "at most 720h0m0s, which is up to "+latest.Format(time.RFC3339))
		}
		require.Equal(t, before, sealed(b, "sub_a"), "nothing was changed")
		extended, err = b.Registry.ExtendSecret(t.Context(), "sub_a", latest)
		require.NoError(t, err)
		require.Equal(t, latest, extended)
		_, err = b.Registry.ExtendSecret(t.Context(), "sub_none", latest)
		require.ErrorIs(t, err, sender.ErrNotFound)
	})
}
