package receiver_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/signing"
)

func TestNewReportsEverything(t *testing.T) {
	_, err := receiver.New[*sql.Tx](nil, nil, nil, &receiver.Config{
		Scope: "a\nb", MaxBodyBytes: -1, Timeout: -1, Retention: 24 * time.Hour,
	})
	for _, problem := range []string{"verifier is nil", "InTx is nil", "store is nil", "Scope", "MaxBodyBytes", "Timeout", "Retention"} {
		require.ErrorContains(t, err, problem)
	}
}

func TestNewConfig(t *testing.T) {
	b, _ := onSQLite(t)
	for name, c := range map[string]struct {
		cfg  *receiver.Config
		want string
	}{
		"nil":                     {nil, ""},
		"zero":                    {&receiver.Config{}, ""},
		"two scopes":              {&receiver.Config{Scope: "a", ScopeOf: func(signing.Verified) string { return "b" }}, "both"},
		"retention below horizon": {&receiver.Config{Horizon: 30 * 24 * time.Hour}, "retention"},
		"sender's reach":          {&receiver.Config{Horizon: 28 * 24 * time.Hour}, ""},
		"retention below reach":   {&receiver.Config{Horizon: 28 * 24 * time.Hour, Retention: 29*24*time.Hour - 1}, "it must be at least 696h0m0s"},
		"long enough":             {&receiver.Config{Horizon: 30 * 24 * time.Hour, Retention: 40 * 24 * time.Hour}, ""},
	} {
		_, err := receiver.New(newVerifier(t, nil), b.inTx, b.store, c.cfg)
		if c.want == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, c.want, name)
		}
	}
}

// Events of different keys do not collide, whatever their ids.
func TestScopeOf(t *testing.T) {
	b, _ := onSQLite(t)
	rcv := b.receiver(t, &receiver.Config{ScopeOf: func(v signing.Verified) string { return "tenant/" + v.KeyID }})
	ev := newEvent(1)
	require.Equal(t, receiver.Applied, newSender(t).Request(ev).Serve(rcv.Handler(b.effect)).Result)
	require.True(t, marked(t, b.inTx, b.store, "tenant/key_1", ev.ID))
	require.False(t, marked(t, b.inTx, b.store, "default", ev.ID))
	named := b.receiver(t, &receiver.Config{Scope: "billing"})
	require.Equal(t, receiver.Applied, newSender(t).Request(ev).Serve(named.Handler(b.effect)).Result)
	require.True(t, marked(t, b.inTx, b.store, "billing", ev.ID))
}
