package sender_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/memory"
)

var allowed = &sender.RegistryConfig{OwnPolicies: sender.PolicyBounds{Allowed: true}}

// registries are two on one store, as of a service before and after another configuration.
func registries(t *testing.T, before, after *sender.RegistryConfig) (a, b *sender.Registry[*memory.Tx]) {
	t.Helper()
	store, err := memory.New(nil)
	require.NoError(t, err)
	keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: make([]byte, 32)})
	require.NoError(t, err)
	a, err = sender.NewRegistry(store, keys, before)
	require.NoError(t, err)
	b, err = sender.NewRegistry(store, keys, after)
	require.NoError(t, err)
	_, _, err = a.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	return a, b
}

func ownPolicy(s sender.Settings) sender.NewSubscription {
	return sender.NewSubscription{Subscriber: "sub_a", URL: "https://example.com/", Settings: s}
}

func TestOwnPolicyRefused(t *testing.T) {
	const m, h = time.Minute, time.Hour
	none, never := &sender.RegistryConfig{}, &sender.RegistryConfig{OwnPolicies: sender.PolicyBounds{Allowed: true, Never: true}}
	narrow := &sender.RegistryConfig{OwnPolicies: sender.PolicyBounds{Allowed: true, MinDelay: m, MaxTries: 4, MaxHorizon: 10 * h, MaxDisableAfter: 2 * h}}
	for name, c := range map[string]struct {
		cfg           *sender.RegistryConfig
		s             sender.Settings
		field, reason string
	}{
		"delays, of which none are allowed":      {none, sender.Settings{RetryDelays: []time.Duration{m, h}}, "retry_delays", "there are 2 retry delays: subscriptions have no policy of their own here, so leave out retry delays, horizon and disable after"},
		"a horizon, of which none is allowed":    {none, sender.Settings{Horizon: h}, "horizon", "the horizon is 1h0m0s: subscriptions have no policy of their own here, so leave out retry delays, horizon and disable after"},
		"disabling, of which none is allowed":    {none, sender.Settings{DisableAfter: h}, "disable_after", "disable after is 1h0m0s: subscriptions have no policy of their own here, so leave out retry delays, horizon and disable after"},
		"a first delay below the bound":          {allowed, sender.Settings{RetryDelays: []time.Duration{9 * time.Second, h}}, "retry_delays", "retry delay 1 is 9s: it must be at least 10s"},
		"a later one":                            {narrow, sender.Settings{RetryDelays: []time.Duration{h, m - 1}}, "retry_delays", "retry delay 2 is 59.999999999s: it must be at least 1m0s"},
		"a negative one":                         {allowed, sender.Settings{RetryDelays: []time.Duration{-h}}, "retry_delays", "retry delay 1 is -1h0m0s: it must be at least 10s"},
		"101 delays":                             {allowed, sender.Settings{RetryDelays: slices.Repeat([]time.Duration{h}, 101)}, "retry_delays", "there are 101 retry delays: at most 100 are allowed, the last of which is repeated"},
		"one attempt too many":                   {narrow, sender.Settings{RetryDelays: []time.Duration{m, h}, Horizon: 2*h + m + 1}, "retry_delays", "the retry delays come to 5 attempts in 2h1m0.000000001s: at most 4 are allowed, so make them longer, or the horizon shorter"},
		"too many, over the longest horizon":     {narrow, sender.Settings{RetryDelays: []time.Duration{m}}, "retry_delays", "the retry delays come to 601 attempts in 10h0m0s: at most 4 are allowed, so make them longer, or the horizon shorter"},
		"very many":                              {allowed, sender.Settings{RetryDelays: []time.Duration{10 * time.Second}}, "retry_delays", "the retry delays come to 25921 attempts in 72h0m0s: at most 30 are allowed, so make them longer, or the horizon shorter"},
		"a long horizon":                         {allowed, sender.Settings{Horizon: 72*h + 1}, "horizon", "the horizon is 72h0m0.000000001s: it must be from 1m0s to 72h0m0s, or 0"},
		"a short one":                            {allowed, sender.Settings{Horizon: m - 1}, "horizon", "the horizon is 59.999999999s: it must be from 1m0s to 72h0m0s, or 0"},
		"a negative horizon":                     {allowed, sender.Settings{Horizon: -h}, "horizon", "the horizon is -1h0m0s: it must be from 1m0s to 72h0m0s, or 0"},
		"disabled late":                          {allowed, sender.Settings{DisableAfter: 120*h + 1}, "disable_after", "disable after is 120h0m0.000000001s: it must be from 1h0m0s to 120h0m0s, or 0"},
		"disabled soon":                          {never, sender.Settings{DisableAfter: h - 1}, "disable_after", "disable after is 59m59.999999999s: it must be from 1h0m0s to 120h0m0s, never, or 0"},
		"disabled at another time below zero":    {never, sender.Settings{DisableAfter: -h}, "disable_after", "disable after is -1h0m0s: it must be from 1h0m0s to 120h0m0s, never, or 0"},
		"never disabled, which is not allowed":   {narrow, sender.Settings{DisableAfter: sender.NeverDisable}, "disable_after", "disable after is never: it must be from 1h0m0s to 2h0m0s, or 0"},
		"another meaning of 410":                 {allowed, sender.Settings{Gone: "failure"}, "gone", `gone is "failure": it must be "stop", or empty for a failure like any other`},
		"another meaning of 410, without bounds": {none, sender.Settings{Gone: "Stop"}, "gone", `gone is "Stop": it must be "stop", or empty for a failure like any other`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := guarded(t, c.cfg).Subscribe(t.Context(), ownPolicy(c.s))
			require.ErrorIs(t, err, sender.ErrInvalid)
			all := sender.FieldErrors(err)
			require.Len(t, all, 1)
			require.Equal(t, []string{c.field, c.reason}, []string{all[0].Field, all[0].Reason})
			text := "sender: invalid subscription: settings: " + c.reason
			if c.cfg == none && c.field != "gone" {
				text += " (RegistryConfig.OwnPolicies)"
			}
			require.Equal(t, text, err.Error())
		})
	}
	_, err := guarded(t, narrow).Subscribe(t.Context(), ownPolicy(sender.Settings{
		RetryDelays: []time.Duration{1}, Horizon: 1, DisableAfter: 1, Gone: "x", Rate: -1,
	}))
	require.Len(t, sender.FieldErrors(err), 5, "all at once: %v", err)
}

func TestOwnPolicyRegistered(t *testing.T) {
	const m, h = time.Minute, time.Hour
	bounds := sender.PolicyBounds{Allowed: true, MinDelay: m, MaxTries: 4, MaxHorizon: 10 * h, MaxDisableAfter: 2 * h, Never: true}
	for _, c := range []struct {
		bounds sender.PolicyBounds
		s      sender.Settings
	}{
		{sender.PolicyBounds{}, sender.Settings{Gone: sender.GoneStops}},
		{bounds, sender.Settings{RetryDelays: []time.Duration{m, h}, Horizon: 2*h + m, DisableAfter: 2 * h}},
		{bounds, sender.Settings{RetryDelays: []time.Duration{m, h, 10 * h}}},
		{bounds, sender.Settings{RetryDelays: slices.Repeat([]time.Duration{h}, 100), Horizon: 3 * h}},
		{bounds, sender.Settings{Horizon: m, DisableAfter: h}},
		{bounds, sender.Settings{Horizon: 10 * h, DisableAfter: sender.NeverDisable, Gone: sender.GoneStops}},
	} {
		r := guarded(t, &sender.RegistryConfig{OwnPolicies: c.bounds})
		given := ownPolicy(c.s)
		s, err := r.Subscribe(t.Context(), given)
		require.NoError(t, err)
		if len(given.Settings.RetryDelays) > 0 {
			given.Settings.RetryDelays = slices.Clone(c.s.RetryDelays)
			c.s.RetryDelays[0]++ // what a caller does with its list is nothing to the store
		}
		got, err := r.Subscription(t.Context(), s.ID)
		require.NoError(t, err)
		require.Equal(t, given.Settings, got.Settings)
	}
}

// Bounds that have become narrower leave alone what is stored: everything else can be
// changed, and the policy for one within them, or none.
func TestOwnPolicyBeyondNarrowerBounds(t *testing.T) {
	for _, bounds := range []sender.PolicyBounds{{}, {Allowed: true, MaxHorizon: time.Hour}} {
		wide, narrow := registries(t, allowed, &sender.RegistryConfig{OwnPolicies: bounds})
		was := sender.Settings{RetryDelays: []time.Duration{time.Hour, 2 * time.Hour}, Horizon: 24 * time.Hour}
		s, err := wide.Subscribe(t.Context(), ownPolicy(was))
		require.NoError(t, err)

		words := "another"
		s, err = narrow.Update(t.Context(), s.ID, sender.SubscriptionChange{Description: &words})
		require.NoError(t, err)
		require.Equal(t, was, s.Settings)
		faster := was
		faster.Rate = 5
		s, err = narrow.Update(t.Context(), s.ID, sender.SubscriptionChange{Settings: &faster})
		require.NoError(t, err)
		require.Equal(t, faster, s.Settings)

		for _, changed := range []sender.Settings{
			{RetryDelays: was.RetryDelays[:1], Horizon: was.Horizon}, {RetryDelays: was.RetryDelays, Horizon: 23 * time.Hour},
			{RetryDelays: was.RetryDelays, Horizon: was.Horizon, DisableAfter: time.Minute},
		} {
			_, err = narrow.Update(t.Context(), s.ID, sender.SubscriptionChange{Settings: &changed})
			require.ErrorIs(t, err, sender.ErrInvalid, "%v", changed)
		}
		s, err = narrow.Update(t.Context(), s.ID, sender.SubscriptionChange{Settings: &sender.Settings{}})
		require.NoError(t, err)
		require.Equal(t, sender.Settings{}, s.Settings)
	}
}

func TestPolicyBoundsRefused(t *testing.T) {
	store, err := memory.New(nil)
	require.NoError(t, err)
	keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: make([]byte, 32)})
	require.NoError(t, err)
	for says, bounds := range map[string]sender.PolicyBounds{
		"MinDelay is 1ms: it must be at least 1s":                                               {MinDelay: time.Millisecond},
		"MaxTries is 1: it must be from 2 to 1000":                                              {MaxTries: 1},
		"MaxTries is 1001":                                                                      {MaxTries: 1001},
		"MaxHorizon is 1s: it must be at least 1m0s":                                            {MaxHorizon: time.Second},
		"MaxDisableAfter is -1h0m0s: it must be at least 1h0":                                   {MaxDisableAfter: -time.Hour},
		"Retention.Reach is 672h0m0s: it must be at least the horizon of the retries, 673h0m0s": {Allowed: true, MaxHorizon: 673 * time.Hour},
	} {
		_, err := sender.NewRegistry(store, keys, &sender.RegistryConfig{OwnPolicies: bounds, Retention: sender.Retention{Receivers: 100 * 24 * time.Hour}})
		require.ErrorContains(t, err, says)
		require.Equal(t, 1, strings.Count(err.Error(), "sender: "), "one problem: %v", err)
	}
}

// Settings without a policy are stored as releases before policies have stored them, and
// those releases keep a policy that they do not know.
func TestStoredPolicy(t *testing.T) {
	text, err := json.Marshal(sender.Settings{RetryDelays: []time.Duration{}})
	require.NoError(t, err)
	require.JSONEq(t, `{"Headers":null,"MaxInFlight":0,"Rate":0,"Timeout":0,"Proxy":"","SealedCertificate":null}`, string(text))

	own := sender.Settings{RetryDelays: []time.Duration{time.Second, time.Hour}, Horizon: time.Minute, DisableAfter: sender.NeverDisable, Gone: sender.GoneStops}
	text, err = json.Marshal(own)
	require.NoError(t, err)
	require.JSONEq(t, `{"Headers":null,"MaxInFlight":0,"Rate":0,"Timeout":0,"Proxy":"","SealedCertificate":null,
		"RetryDelays":[1000000000,3600000000000],"Horizon":60000000000,"DisableAfter":-1,"Gone":"stop"}`, string(text))
	require.Equal(t, own, sender.ReadSettings(text))
	require.Contains(t, fmt.Sprint(own), ` retry_delays:[1s 1h0m0s] horizon:1m0s disable_after:never gone:"stop"}`)
}

func TestDisabledAt(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	p := sender.EffectivePolicy{DisableAfter: 10 * time.Hour}
	require.Zero(t, p.DisabledAt(sender.Health{}, at))
	require.Equal(t, at.Add(10*time.Hour), p.DisabledAt(sender.Health{FailingSince: at}, at))
	require.Equal(t, at.Add(10*time.Hour), p.DisabledAt(sender.Health{FailingSince: at, Warned: 90, WarnedAt: at.Add(9 * time.Hour)}, at.Add(9*time.Hour)))
	require.Equal(t, at.Add(12*time.Hour), p.DisabledAt(sender.Health{FailingSince: at, Warned: 90, WarnedAt: at.Add(11 * time.Hour)}, at.Add(11*time.Hour)), "its owner is warned first")
	require.Equal(t, at.Add(31*time.Hour), p.DisabledAt(sender.Health{FailingSince: at, Warned: 75, WarnedAt: at.Add(8 * time.Hour)}, at.Add(30*time.Hour)), "the next failure warns it")
	require.Equal(t, at.Add(30*time.Hour), p.DisabledAt(sender.Health{FailingSince: at, Warned: 90, WarnedAt: at.Add(9 * time.Hour)}, at.Add(30*time.Hour)), "the next failure disables it")
	p.DisableAfter = sender.NeverDisable
	require.Zero(t, p.DisabledAt(sender.Health{FailingSince: at}, at))
}
