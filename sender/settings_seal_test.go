package sender_test

import (
	"encoding/json"
	"errors"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/sendertest"
)

// stored returns a subscription's settings as the database has them.
func stored(b *bedtest.Bed, id string) sender.Settings {
	b.T.Helper()
	var s sender.Subscription
	require.NoError(b.T, b.Store.InTx(b.T.Context(), func(tx *memory.Tx) (err error) {
		s, err = b.Store.SubscriptionTx(b.T.Context(), tx, sender.SubscriptionKey{ID: id})
		return err
	}))
	return s.Settings
}

// overwrite puts settings into the database, as an attacker without keys could.
func overwrite(b *bedtest.Bed, id string, set sender.Settings) {
	b.T.Helper()
	require.NoError(b.T, b.Store.InTx(b.T.Context(), func(tx *memory.Tx) error {
		s, err := b.Store.SubscriptionTx(b.T.Context(), tx, sender.SubscriptionKey{ID: id})
		s.Settings = set
		return errors.Join(err, b.Store.UpdateSubscriptionTx(b.T.Context(), tx, s))
	}))
}

// posted publishes an event, and returns the value of a header in its one post, or "" if
// none was sent.
func posted(b *bedtest.Bed, keys *sender.Keys, header string) string {
	b.T.Helper()
	endpoint := sendertest.NewRoundTripper()
	b.Publish("sub_a")
	d, err := dispatch.New(b.Store, keys, &dispatch.Config{Network: bedtest.Private, UnguardedTransport: endpoint})
	require.NoError(b.T, err)
	_, err = d.RunOnce(b.T.Context())
	require.NoError(b.T, err)
	posts := endpoint.Requests()
	if len(posts) == 0 {
		return ""
	}
	require.Len(b.T, posts, 1)
	return posts[0].Header.Get(header)
}

// The values of headers are only in the posts, and neither in the database nor in the
// results of a registry.
func TestHeadersAreSealed(t *testing.T) {
	b := bedtest.New(t)
	s, _ := b.Subscribe("sub_a", "http://endpoint/")
	set := sender.Settings{Headers: map[string]string{"authorization": "Bearer hunter2", "X-Tenant": "hunter2", "X-Empty": ""}}
	updated, err := b.Registry.Update(t.Context(), s.ID, sender.SubscriptionChange{Settings: &set})
	require.NoError(t, err)
	read, err := b.Registry.Subscription(t.Context(), s.ID)
	require.NoError(t, err)
	require.Equal(t, "Bearer hunter2", set.Headers["authorization"], "the caller's map is the caller's")
	for _, got := range []sender.Settings{updated.Settings, read.Settings, stored(b, s.ID)} {
		require.Len(t, got.Headers, 3)
		text, err := json.Marshal(got)
		require.NoError(t, err)
		require.NotContains(t, string(text), "hunter2")
		require.NotEmpty(t, got.Headers["X-Empty"])
	}
	require.Equal(t, "Bearer hunter2", posted(b, b.Keys, "Authorization"))

	other, err := b.Registry.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: "http://endpoint/", Settings: set})
	require.NoError(t, err)
	require.NotEqual(t, other.Settings.Headers["X-Tenant"], read.Settings.Headers["X-Tenant"], "nobody sees that they are equal")
}

// A caller who changes settings hands back the values that must stay, sealed as they were
// read.
func TestSealedHeadersAreHandedBack(t *testing.T) {
	b := bedtest.New(t)
	s, _ := b.Subscribe("sub_a", "http://endpoint/")
	set := sender.Settings{Headers: map[string]string{"Authorization": "Bearer hunter2"}}
	first, err := b.Registry.Update(t.Context(), s.ID, sender.SubscriptionChange{Settings: &set})
	require.NoError(t, err)

	change := first.Settings
	change.Headers = maps.Clone(change.Headers)
	change.Headers["X-New"], change.MaxInFlight = "new", 3
	second, err := b.Registry.Update(t.Context(), s.ID, sender.SubscriptionChange{Settings: &change})
	require.NoError(t, err)
	require.Equal(t, first.Settings.Headers["Authorization"], second.Settings.Headers["Authorization"])
	require.Equal(t, "Bearer hunter2", posted(b, b.Keys, "Authorization"))
	require.Equal(t, "new", posted(b, b.Keys, "X-New"))

	// A value that was read before it was sealed anew still belongs to its subscription.
	renewing, err := sender.NewRegistry(b.Store, bedtest.NewKeys(t, "2", "1"), &sender.RegistryConfig{Network: bedtest.Private})
	require.NoError(t, err)
	_, err = renewing.Rewrap(t.Context())
	require.NoError(t, err)
	_, err = renewing.Update(t.Context(), s.ID, sender.SubscriptionChange{Settings: &first.Settings})
	require.NoError(t, err)
	require.Equal(t, "Bearer hunter2", posted(b, bedtest.NewKeys(t, "2"), "Authorization"), "and does not bring back a key that is done without")

	for name, headers := range map[string]map[string]string{
		"another header":  {"X-Other": first.Settings.Headers["Authorization"]},
		"changed":         {"Authorization": first.Settings.Headers["Authorization"] + "A"},
		"no sealed value": {"Authorization": "\x01hunter2"},
	} {
		_, err = renewing.Update(t.Context(), s.ID, sender.SubscriptionChange{Settings: &sender.Settings{Headers: headers}})
		require.ErrorIs(t, err, sender.ErrInvalid, name)
		require.ErrorContains(t, err, "give it as it is to be sent", name)
		require.NotContains(t, err.Error(), "hunter2")
	}
	// Space in front of the mark makes it no sealed value: it would become one without it.
	for _, space := range []string{" ", "\t"} {
		_, err = renewing.Update(t.Context(), s.ID, sender.SubscriptionChange{Settings: &sender.Settings{Headers: map[string]string{"Authorization": space + "\x01hunter2"}}})
		require.ErrorIs(t, err, sender.ErrInvalid)
		require.ErrorContains(t, err, "control character at offset 0")
	}
	_, err = renewing.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: "http://endpoint/", Settings: first.Settings})
	require.ErrorIs(t, err, sender.ErrInvalid, "another subscription")
}

// A value that cannot be opened is not sent, and nothing is sent without it. It does not
// hinder other changes.
func TestSealedHeadersThatDoNotOpen(t *testing.T) {
	b := bedtest.New(t)
	s, _ := b.Subscribe("sub_a", "http://endpoint/")
	subscribed, err := b.Registry.Update(t.Context(), s.ID, sender.SubscriptionChange{Settings: &sender.Settings{Headers: map[string]string{"Authorization": "a", "X-B": "b"}}})
	require.NoError(t, err)
	sealed := subscribed.Settings.Headers
	for name, headers := range map[string]map[string]string{
		"moved to another header": {"Authorization": sealed["X-B"]},
		"cut off":                 {"Authorization": sealed["Authorization"][:30]},
		"not sealed text":         {"Authorization": "\x01*"},
	} {
		overwrite(b, s.ID, sender.Settings{Headers: headers})
		require.Empty(t, posted(b, b.Keys, "Content-Type"), name)
	}

	overwrite(b, s.ID, subscribed.Settings)
	rotated, err := sender.NewRegistry(b.Store, bedtest.NewKeys(t, "2", "1"), &sender.RegistryConfig{Network: bedtest.Private})
	require.NoError(t, err)
	_, _, err = rotated.RotateSecret(t.Context(), "sub_a", nil)
	require.NoError(t, err)
	lost, err := sender.NewRegistry(b.Store, bedtest.NewKeys(t, "2"), &sender.RegistryConfig{Network: bedtest.Private})
	require.NoError(t, err)
	description := "new"
	after, err := lost.Update(t.Context(), s.ID, sender.SubscriptionChange{Description: &description})
	require.NoError(t, err)
	require.Equal(t, sealed, after.Settings.Headers)
	_, err = lost.Rewrap(t.Context())
	require.ErrorIs(t, err, sender.ErrSealed)
	require.ErrorContains(t, err, `the header "Authorization" of subscription`)
}

// After a Rewrap all values are sealed with the current key, including values that were
// never sealed. Until then unsealed values are sent as they are.
func TestRewrapSealsHeaders(t *testing.T) {
	b := bedtest.New(t)
	s, _ := b.Subscribe("sub_a", "http://endpoint/")
	overwrite(b, s.ID, sender.Settings{Headers: map[string]string{"Authorization": "Bearer hunter2"}, MaxInFlight: 3})
	require.Equal(t, "Bearer hunter2", posted(b, b.Keys, "Authorization"))
	for _, keys := range []*sender.Keys{b.Keys, bedtest.NewKeys(t, "2", "1")} {
		before := stored(b, s.ID)
		reg, err := sender.NewRegistry(b.Store, keys, &sender.RegistryConfig{Network: bedtest.Private})
		require.NoError(t, err)
		n, err := reg.Rewrap(t.Context())
		require.NoError(t, err)
		require.Positive(t, n)
		after := stored(b, s.ID)
		require.NotEqual(t, before.Headers, after.Headers)
		require.NotContains(t, after.Headers["Authorization"], "hunter2")
		require.Equal(t, 3, after.MaxInFlight)
		require.Equal(t, "Bearer hunter2", posted(b, keys, "Authorization"))
		n, err = reg.Rewrap(t.Context())
		require.NoError(t, err)
		require.Zero(t, n)
	}
	require.Equal(t, "Bearer hunter2", posted(b, bedtest.NewKeys(t, "2"), "Authorization"), "the first key can be done without")
}
