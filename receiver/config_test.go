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
	_, err := receiver.New[*sql.Tx](nil, nil, nil, "a\nb", &receiver.Config{
		MaxBodyBytes: -1, Timeout: -1, Retention: 24 * time.Hour,
	})
	for _, problem := range []string{"verifier is nil", "InTx is nil", "store is nil", "the scope", "MaxBodyBytes", "Timeout", "Retention"} {
		require.ErrorContains(t, err, problem)
	}
}

func TestNewConfig(t *testing.T) {
	b, _ := onSQLite(t)
	scopeOf := func(signing.Verified) string { return "b" }
	for name, c := range map[string]struct {
		scope string
		cfg   *receiver.Config
		want  string
	}{
		"nil":                   {"a", nil, ""},
		"zero":                  {"a", &receiver.Config{}, ""},
		"no scope":              {"", nil, "the scope is empty: give a name for who sends"},
		"scope of the key":      {"", &receiver.Config{ScopeOf: scopeOf}, ""},
		"two scopes":            {"a", &receiver.Config{ScopeOf: scopeOf}, "both"},
		"sender's reach":        {"a", &receiver.Config{Retention: 32 * 24 * time.Hour}, ""},
		"retention below reach": {"a", &receiver.Config{Retention: 32*24*time.Hour - 1}, "it must be at least 768h0m0s"},
		"reach of ones own":     {"a", &receiver.Config{Reach: 30 * 24 * time.Hour}, "it must be at least 816h0m0s"},
		"horizon of ones own":   {"a", &receiver.Config{Horizon: 73 * time.Hour}, "it must be at least 769h0m0s (the reach, the horizon and a margin"},
		"a short horizon":       {"a", &receiver.Config{Horizon: time.Hour, Retention: 697 * time.Hour}, ""},
		"negative horizon":      {"a", &receiver.Config{Horizon: -1}, "the horizon is -1ns: it must not be negative"},
		"long enough":           {"a", &receiver.Config{Reach: 30 * 24 * time.Hour, Retention: 40 * 24 * time.Hour}, ""},
	} {
		_, err := receiver.New(newVerifier(t, nil), b.inTx, b.store, c.scope, c.cfg)
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
	require.Equal(t, receiver.Applied, newSender(t).Request(ev).Serve(rcv.Handler(receiver.State(b.effect))).Result)
	require.True(t, marked(t, b.inTx, b.store, "tenant/key_1", ev.ID))
	require.False(t, marked(t, b.inTx, b.store, "default", ev.ID))
	named, err := receiver.New(newVerifier(t, nil), b.inTx, b.store, "billing", nil)
	require.NoError(t, err)
	require.Equal(t, receiver.Applied, newSender(t).Request(ev).Serve(named.Handler(receiver.State(b.effect))).Result)
	require.True(t, marked(t, b.inTx, b.store, "billing", ev.ID))
}
