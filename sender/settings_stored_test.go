package sender_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

// Stored settings are read as they were written, together with the fields that a later
// release has put beside them.
func TestStoredSettings(t *testing.T) {
	full := sender.Settings{
		Headers: map[string]string{"A": "1"}, MaxInFlight: 3, Rate: 2.5, Timeout: time.Second, Proxy: "eu", SealedCertificate: []byte("\x00\xff"),
		Order: sender.OrderObject, HoldTries: 3, HoldFor: time.Hour, HoldDead: true,
	}
	for _, want := range []sender.Settings{{}, full} {
		text, err := json.Marshal(want)
		require.NoError(t, err)
		got := sender.ReadSettings(text)
		require.NoError(t, got.Unreadable())
		require.Equal(t, want, got)
	}

	later := sender.ReadSettings([]byte(`{"MaxInFlight":3,"Burst":{"a":[1,2]},"proxy":"eu"}`))
	require.NoError(t, later.Unreadable())
	require.Equal(t, []any{3, "eu"}, []any{later.MaxInFlight, later.Proxy})
	later.MaxInFlight = 4
	text, err := json.Marshal(later)
	require.NoError(t, err)
	require.JSONEq(t, `{"Headers":null,"MaxInFlight":4,"Rate":0,"Timeout":0,"Proxy":"eu","SealedCertificate":null,"Burst":{"a":[1,2]}}`, string(text))

	for _, stored := range []string{`{"Rate":{"per_second":5},"MaxInFlight":3}`, `[]`, `7`, `{`, ``} {
		s := sender.ReadSettings([]byte(stored))
		require.ErrorContains(t, s.Unreadable(), "give the subscription new ones", stored)
		require.Zero(t, s.MaxInFlight)
		if text, err := json.Marshal(s); json.Valid([]byte(stored)) {
			require.NoError(t, err)
			require.Equal(t, stored, string(text), "it is written back as it was")
		}
	}
}

// The settings of another subscription that this release cannot read are not copied.
func TestSubscribeWithUnreadableSettings(t *testing.T) {
	a, _ := registries(t, nil, nil)
	_, err := a.Subscribe(t.Context(), ownPolicy(sender.ReadSettings([]byte(`[]`))))
	require.ErrorIs(t, err, sender.ErrInvalid)
	require.ErrorContains(t, err, "cannot be read by this release")
}
