package sender_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/sendertest"
	"github.com/surehook/surehook/signing"
)

// signedBy ends the test unless a request is signed with these secrets. The header of
// Standard Webhooks has a signature with each of them, newest first and last those that
// wait, and no others. The header of TimestampBody is signed with the first.
func signedBy(t *testing.T, p sendertest.Request, inOrder ...signing.Secret) {
	t.Helper()
	signatures := strings.Fields(p.Header.Get("Webhook-Signature"))
	require.Len(t, signatures, len(inOrder), "signatures of Standard Webhooks")
	for i, secret := range inOrder {
		one := p
		one.Header = p.Header.Clone()
		one.Header.Set("Webhook-Signature", signatures[i])
		require.NoError(t, one.Verify(secret, signing.StandardWebhooks{}), "signature %d", i)
		require.NoError(t, p.Verify(secret, signing.StandardWebhooks{}), "an owner who has secret %d", i)
		if err := p.Verify(secret, signing.TimestampBody{}); i == 0 {
			require.NoError(t, err, "the one that signs")
		} else {
			require.ErrorIs(t, err, signing.ErrSignatureMismatch, "secret %d", i)
		}
	}
}

func TestSecretsOverTheWire(t *testing.T) {
	b := bedtest.New(t)
	ep := sendertest.NewEndpoint(t)
	_, first := b.Subscribe("sub_a", ep.URL())
	_, others := b.Subscribe("sub_b", ep.URL())
	d := b.Dispatcher(dispatch.Config{})
	post := func(subscriber string) sendertest.Request {
		t.Helper()
		b.Publish(subscriber)
		_, err := d.RunOnce(t.Context())
		require.NoError(t, err)
		posts := ep.Requests()
		return posts[len(posts)-1]
	}
	signedBy(t, post("sub_a"), first)

	began := time.Now()
	second, until, err := b.Registry.RotateSecret(t.Context(), "sub_a", nil)
	require.NoError(t, err)
	require.WithinRange(t, until, began.Add(24*time.Hour-time.Microsecond), time.Now().Add(24*time.Hour))
	signedBy(t, post("sub_a"), second, first)

	own := signing.GenerateSecret()
	third, until, err := b.Registry.RotateSecret(t.Context(), "sub_a", &sender.Rotation{Overlap: time.Hour, Secret: own})
	require.NoError(t, err)
	require.Equal(t, own, third)
	require.WithinRange(t, until, began.Add(time.Hour-time.Microsecond), time.Now().Add(time.Hour))
	signedBy(t, post("sub_a"), third, second, first)

	// These are as many secrets as ever sign; another one would drop a signature that was
	// promised.
	fourth, _, err := b.Registry.RotateSecret(t.Context(), "sub_a", nil)
	require.NoError(t, err)
	signedBy(t, post("sub_a"), fourth, third, second, first)
	for _, overlap := range []time.Duration{0, 1} {
		_, _, err = b.Registry.RotateSecret(t.Context(), "sub_a", &sender.Rotation{Overlap: overlap})
		require.ErrorIs(t, err, sender.ErrInvalid)
		require.ErrorContains(t, err, "retire the older ones, or replace all of them without an overlap")
	}
	signedBy(t, post("sub_a"), fourth, third, second, first)

	require.NoError(t, b.Registry.RetireSecret(t.Context(), "sub_a"))
	signedBy(t, post("sub_a"), fourth)
	require.NoError(t, b.Registry.RetireSecret(t.Context(), "sub_a"), "nothing is left to end")
	signedBy(t, post("sub_a"), fourth)

	fifth, _, err := b.Registry.RotateSecret(t.Context(), "sub_a", nil)
	require.NoError(t, err)
	signedBy(t, post("sub_a"), fifth, fourth)
	for range 2 {
		_, _, err = b.Registry.RotateSecret(t.Context(), "sub_a", nil)
		require.NoError(t, err)
	}
	fresh, err := b.Registry.RevokeSecret(t.Context(), "sub_a", signing.Secret{})
	require.NoError(t, err, "four are valid, and none is to stay so")
	signedBy(t, post("sub_a"), fresh)
	own = signing.GenerateSecret()
	fresh, err = b.Registry.RevokeSecret(t.Context(), "sub_a", own)
	require.NoError(t, err)
	require.Equal(t, own, fresh)
	signedBy(t, post("sub_a"), fresh)

	signedBy(t, post("sub_b"), others)
}

// A secret ends without a change, and so without another version of the keyring.
func TestOverlapEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		endpoint := sendertest.NewRoundTripper()
		_, first := b.Subscribe("sub_a", "http://endpoint/")
		d := b.Dispatcher(dispatch.Config{UnguardedTransport: endpoint})
		post := func() sendertest.Request {
			t.Helper()
			b.Publish("sub_a")
			_, err := d.RunOnce(t.Context())
			require.NoError(t, err)
			posts := endpoint.Requests()
			return posts[len(posts)-1]
		}
		began := time.Now()
		second, until, err := b.Registry.RotateSecret(t.Context(), "sub_a", &sender.Rotation{Overlap: time.Hour})
		require.NoError(t, err)
		require.Equal(t, began.Add(time.Hour).UTC(), until)
		third, until, err := b.Registry.RotateSecret(t.Context(), "sub_a", nil)
		require.NoError(t, err)
		require.Equal(t, began.Add(24*time.Hour).UTC(), until)
		time.Sleep(time.Hour)
		signedBy(t, post(), third, second, first)
		time.Sleep(time.Microsecond)
		signedBy(t, post(), third, second)
		time.Sleep(time.Until(until))
		signedBy(t, post(), third, second)
		time.Sleep(time.Microsecond)
		signedBy(t, post(), third)
	})
}

// A secret begins to sign without a change, and so without another version of the keyring.
func TestSignFromComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		endpoint := sendertest.NewRoundTripper()
		_, first := b.Subscribe("sub_a", "http://endpoint/")
		d := b.Dispatcher(dispatch.Config{UnguardedTransport: endpoint})
		post := func() sendertest.Request {
			t.Helper()
			b.Publish("sub_a")
			_, err := d.RunOnce(t.Context())
			require.NoError(t, err)
			posts := endpoint.Requests()
			return posts[len(posts)-1]
		}
		shown := func() (secrets []sender.SubscriberSecret) {
			t.Helper()
			secrets, err := b.Registry.Secrets(t.Context(), "sub_a")
			require.NoError(t, err)
			signs, err := b.Registry.SigningSecret(t.Context(), "sub_a")
			require.NoError(t, err)
			for i, s := range secrets {
				require.NotEmpty(t, s.ID)
				require.Equal(t, s.State == sender.SecretSigning, s.Secret.Fingerprint() == signs.Fingerprint(), "the one that signs")
				secrets[i].ID, secrets[i].Secret = "", signing.Secret{}
			}
			return secrets
		}
		signedBy(t, post(), first)
		require.Equal(t, []sender.SubscriberSecret{{State: sender.SecretSigning}}, shown())

		from, latest := time.Now().Add(time.Hour).UTC(), time.Now().Add(30*24*time.Hour).UTC()
		second, until, err := b.Registry.RotateSecret(t.Context(), "sub_a", &sender.Rotation{SignFrom: from})
		require.NoError(t, err)
		before := sealed(b, "sub_a")
		signedBy(t, post(), first, second)
		require.Equal(t, []sender.SubscriberSecret{
			{State: sender.SecretWaiting, SignsFrom: from}, {State: sender.SecretSigning, ValidUntil: until, LatestEnd: latest},
		}, shown())
		time.Sleep(time.Until(from) - time.Microsecond)
		signedBy(t, post(), first, second)
		time.Sleep(time.Microsecond)
		signedBy(t, post(), second, first)
		require.Equal(t, []sender.SubscriberSecret{
			{State: sender.SecretSigning, SignsFrom: from}, {State: sender.SecretEnding, ValidUntil: until, LatestEnd: latest},
		}, shown())
		require.Equal(t, before, sealed(b, "sub_a"), "nothing was written")
		time.Sleep(time.Until(until) + time.Microsecond)
		signedBy(t, post(), second)

		third, _, err := b.Registry.RotateSecret(t.Context(), "sub_a", &sender.Rotation{SignFrom: time.Now().Add(time.Hour)})
		require.NoError(t, err)
		signedBy(t, post(), second, third)
		require.NoError(t, b.Registry.ActivateSecret(t.Context(), "sub_a"))
		signedBy(t, post(), third, second)
		version := sealed(b, "sub_a").Version
		require.NoError(t, b.Registry.ActivateSecret(t.Context(), "sub_a"), "none waits")
		require.Equal(t, version, sealed(b, "sub_a").Version)

		// One that waits goes on waiting behind a newer one, and is passed over by one that
		// signs at once.
		fourth, _, err := b.Registry.RotateSecret(t.Context(), "sub_a", &sender.Rotation{SignFrom: time.Now().Add(2 * time.Hour)})
		require.NoError(t, err)
		signedBy(t, post(), third, second, fourth)
		require.NoError(t, b.Registry.RetireSecret(t.Context(), "sub_a"))
		signedBy(t, post(), fourth)
		fifth, _, err := b.Registry.RotateSecret(t.Context(), "sub_a", &sender.Rotation{SignFrom: time.Now().Add(2 * time.Hour)})
		require.NoError(t, err)
		sixth, _, err := b.Registry.RotateSecret(t.Context(), "sub_a", nil)
		require.NoError(t, err)
		signedBy(t, post(), sixth, fifth, fourth)
		time.Sleep(3 * time.Hour)
		signedBy(t, post(), sixth, fifth, fourth)
	})
}

// A secret is activated whatever the clock of the process says that asks for it.
func TestActivateUnderAnotherClock(t *testing.T) {
	for name, off := range map[string]time.Duration{"ahead": 10 * time.Hour, "behind": -10 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := bedtest.New(t)
				endpoint := sendertest.NewRoundTripper()
				_, first := b.Subscribe("sub_a", "http://endpoint/")
				d := b.Dispatcher(dispatch.Config{UnguardedTransport: endpoint})
				second, _, err := b.Registry.RotateSecret(t.Context(), "sub_a", &sender.Rotation{SignFrom: time.Now().Add(time.Hour)})
				require.NoError(t, err)
				other, err := sender.NewRegistry(b.Store, b.Keys, &sender.RegistryConfig{Now: func() time.Time { return time.Now().Add(off) }})
				require.NoError(t, err)
				require.NoError(t, other.ActivateSecret(t.Context(), "sub_a"))
				b.Publish("sub_a")
				_, err = d.RunOnce(t.Context())
				require.NoError(t, err)
				signedBy(t, endpoint.Requests()[0], second, first)
			})
		})
	}
}

// The clock of the rotating process may be off: the database's clock decides which secrets
// sign.
func TestRotateUnderAnotherClock(t *testing.T) {
	for name, off := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := bedtest.New(t)
				endpoint := sendertest.NewRoundTripper()
				_, first := b.Subscribe("sub_a", "http://endpoint/")
				reg, err := sender.NewRegistry(b.Store, b.Keys, &sender.RegistryConfig{Now: func() time.Time { return time.Now().Add(off) }})
				require.NoError(t, err)
				d := b.Dispatcher(dispatch.Config{UnguardedTransport: endpoint})
				second, _, err := reg.RotateSecret(t.Context(), "sub_a", nil)
				require.NoError(t, err)
				b.Publish("sub_a")
				_, err = d.RunOnce(t.Context())
				require.NoError(t, err)
				third, err := reg.RevokeSecret(t.Context(), "sub_a", signing.Secret{})
				require.NoError(t, err)
				b.Publish("sub_a")
				_, err = d.RunOnce(t.Context())
				require.NoError(t, err)
				posts := endpoint.Requests()
				require.Len(t, posts, 2)
				signedBy(t, posts[0], second, first)
				signedBy(t, posts[1], third)
			})
		})
	}
}

func TestRotateRefuses(t *testing.T) {
	b := bedtest.New(t)
	_, secret, err := b.Registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	second, _, err := b.Registry.RotateSecret(t.Context(), "sub_a", nil)
	require.NoError(t, err)
	parse := func(text string) signing.Secret {
		s, err := signing.ParseSecret(text)
		require.NoError(t, err)
		return s
	}
	public := parse("whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=")
	before := sealed(b, "sub_a")
	for _, c := range []struct {
		name       string
		subscriber string
		r          sender.Rotation
		is         error
		says       string
	}{
		{"no such subscriber", "sub_x", sender.Rotation{}, sender.ErrNotFound, "sub_x"},
		{"an overlap that is negative", "sub_a", sender.Rotation{Overlap: -1}, sender.ErrInvalid, "the overlap is -1ns"},
		{"an overlap that is too long", "sub_a", sender.Rotation{Overlap: 30*24*time.Hour + 1}, sender.ErrInvalid, "at most 720h"},
		{"a beginning that has passed", "sub_a", sender.Rotation{SignFrom: time.Now().Add(-time.Hour)}, sender.ErrInvalid, "give a time to come, or leave it out"},
		{"a beginning after the end of the secret before", "sub_a", sender.Rotation{Overlap: time.Hour, SignFrom: time.Now().Add(2 * time.Hour)}, sender.ErrInvalid, "give an earlier SignFrom, or a longer overlap"},
		{"a secret that cannot sign", "sub_a", sender.Rotation{Secret: public}, sender.ErrInvalid, "secret"},
		{"the secret that it has", "sub_a", sender.Rotation{Secret: parse(second.Reveal())}, sender.ErrInvalid, "has it already"},
		{"the secret before", "sub_a", sender.Rotation{Secret: parse(secret.Reveal())}, sender.ErrInvalid, "has it already"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := b.Registry.RotateSecret(t.Context(), c.subscriber, &c.r)
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.says)
			if c.r.Secret != (signing.Secret{}) {
				require.NotContains(t, err.Error(), c.r.Secret.Reveal())
				_, err = b.Registry.RevokeSecret(t.Context(), c.subscriber, c.r.Secret)
				require.ErrorIs(t, err, c.is)
			}
			require.Equal(t, before, sealed(b, "sub_a"), "nothing was changed")
		})
	}
	_, _, err = b.Registry.RotateSecret(t.Context(), "sub_a", &sender.Rotation{Overlap: -1, Secret: public, SignFrom: time.Unix(1, 0)})
	require.ErrorContains(t, err, "the overlap is -1ns")
	require.ErrorContains(t, err, "SignFrom is 1970-01-01T00:00:01Z")
	require.ErrorContains(t, err, "sender: invalid secret", "all problems at once")
	require.ErrorIs(t, b.Registry.RetireSecret(t.Context(), "sub_x"), sender.ErrNotFound)
	require.ErrorIs(t, b.Registry.ActivateSecret(t.Context(), "sub_x"), sender.ErrNotFound)
	_, err = b.Registry.Secrets(t.Context(), "sub_x")
	require.ErrorIs(t, err, sender.ErrNotFound)
	_, err = b.Registry.RevokeSecret(t.Context(), "sub_x", signing.Secret{})
	require.ErrorIs(t, err, sender.ErrNotFound)
}

// A secret with which no scheme of the deliveries can sign is refused when it is given.
// Otherwise each of its deliveries would be put off.
func TestSecretsSuitTheSchemes(t *testing.T) {
	private, err := signing.ParseSecret("whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=")
	require.NoError(t, err)
	shared := signing.GenerateSecret()
	for name, c := range map[string]struct {
		scheme           signing.Scheme
		suits, doesNot   signing.Secret
		generatedIsWrong bool
	}{
		"HMAC":    {scheme: signing.TimestampBody{}, suits: shared, doesNot: private},
		"Ed25519": {scheme: signing.Discord(), suits: private, doesNot: shared, generatedIsWrong: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := bedtest.New(t)
			r, err := sender.NewRegistry[*memory.Tx](b.Store, b.Keys, &sender.RegistryConfig{Schemes: []signing.Scheme{c.scheme}})
			require.NoError(t, err)
			_, _, err = r.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a", Secret: c.doesNot})
			require.ErrorIs(t, err, sender.ErrInvalid)
			require.ErrorIs(t, err, signing.ErrSecretUnsuited)
			_, _, err = r.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a", Secret: c.suits})
			require.NoError(t, err)
			before := sealed(b, "sub_a")
			_, _, err = r.RotateSecret(t.Context(), "sub_a", &sender.Rotation{Secret: c.doesNot})
			require.ErrorIs(t, err, signing.ErrSecretUnsuited)
			_, err = r.RevokeSecret(t.Context(), "sub_a", c.doesNot)
			require.ErrorIs(t, err, signing.ErrSecretUnsuited)
			_, _, created := r.CreateSubscriber(t.Context(), sender.NewSubscriber{})
			_, _, rotated := r.RotateSecret(t.Context(), "sub_a", nil)
			if !c.generatedIsWrong {
				require.NoError(t, errors.Join(created, rotated))
				return
			}
			require.ErrorContains(t, created, "it must be given")
			require.ErrorContains(t, rotated, "it must be given")
			require.Equal(t, before, sealed(b, "sub_a"))
		})
	}
	b := bedtest.New(t)
	for _, schemes := range [][]signing.Scheme{{}, {nil}} {
		_, err := sender.NewRegistry[*memory.Tx](b.Store, b.Keys, &sender.RegistryConfig{Schemes: schemes})
		require.ErrorContains(t, err, "RegistryConfig.Schemes")
	}
}

// sealed is a subscriber's keyring as it is stored.
func sealed(b *bedtest.Bed, subscriber string) (k sender.SealedKeyring) {
	b.T.Helper()
	require.NoError(b.T, b.Store.InTx(b.T.Context(), func(tx *memory.Tx) (err error) {
		k, err = b.Store.SubscriberKeyringTx(b.T.Context(), tx, subscriber)
		return err
	}))
	return k
}

func TestSecretsInTheCallersTransaction(t *testing.T) {
	b := bedtest.New(t)
	_, _, err := b.Registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	_, _, err = b.Registry.RotateSecret(t.Context(), "sub_a", &sender.Rotation{SignFrom: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	before := sealed(b, "sub_a")
	failed := errors.New("the caller failed")
	for name, change := range map[string]func(tx *memory.Tx) error{
		"rotate": func(tx *memory.Tx) error {
			_, _, err := b.Registry.RotateSecretTx(t.Context(), tx, "sub_a", nil)
			return err
		},
		"activate": func(tx *memory.Tx) error { return b.Registry.ActivateSecretTx(t.Context(), tx, "sub_a") },
		"retire":   func(tx *memory.Tx) error { return b.Registry.RetireSecretTx(t.Context(), tx, "sub_a") },
		"revoke": func(tx *memory.Tx) error {
			_, err := b.Registry.RevokeSecretTx(t.Context(), tx, "sub_a", signing.Secret{})
			return err
		},
	} {
		require.ErrorIs(t, b.Store.InTx(t.Context(), func(tx *memory.Tx) error {
			require.NoError(t, change(tx), name)
			k, err := b.Store.SubscriberKeyringTx(t.Context(), tx, "sub_a")
			require.NoError(t, err)
			require.Greater(t, k.Version, before.Version, "%s in the transaction", name)
			return failed
		}), failed)
		require.Equal(t, before, sealed(b, "sub_a"), "%s was rolled back", name)
	}
}

func TestSigningSecretIsTheOneThatSigns(t *testing.T) {
	b := bedtest.New(t)
	ep := sendertest.NewEndpoint(t)
	b.Subscribe("sub_a", ep.URL())
	_, _, err := b.Registry.RotateSecret(t.Context(), "sub_a", nil)
	require.NoError(t, err)

	newest, err := b.Registry.SigningSecret(t.Context(), "sub_a")
	require.NoError(t, err)
	b.Publish("sub_a")
	_, err = b.Dispatcher(dispatch.Config{}).RunOnce(t.Context())
	require.NoError(t, err)
	require.Len(t, ep.Requests(), 1)
	require.NoError(t, ep.Requests()[0].Verify(newest, signing.TimestampBody{}))

	_, err = b.Registry.SigningSecret(t.Context(), "sub_nobody")
	require.ErrorIs(t, err, sender.ErrNotFound)
}

// A test of the new secret is signed with it alone, whether it waits or signs, and everything
// else is signed as before. Once it has ended, its test goes out like anything else.
func TestSecretIsTestedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		endpoint := sendertest.NewRoundTripper()
		s, first := b.Subscribe("sub_a", "http://endpoint/")
		d := b.Dispatcher(dispatch.Config{UnguardedTransport: endpoint})
		last := func() sendertest.Request {
			t.Helper()
			_, err := d.RunOnce(t.Context())
			require.NoError(t, err)
			posts := endpoint.Requests()
			return posts[len(posts)-1]
		}
		_, err := b.Registry.SendSecretTest(t.Context(), s.ID)
		require.NoError(t, err)
		signedBy(t, last(), first)
		second, _, err := b.Registry.RotateSecret(t.Context(), "sub_a", &sender.Rotation{SignFrom: time.Now().Add(time.Hour)})
		require.NoError(t, err)
		ref, err := b.Registry.SendSecretTest(t.Context(), s.ID)
		require.NoError(t, err)
		post := last()
		signedBy(t, post, second)
		got, err := b.History.Delivery(t.Context(), ref.Delivery)
		require.NoError(t, err)
		list, err := b.Registry.Secrets(t.Context(), "sub_a")
		require.NoError(t, err)
		require.Equal(t, []any{"webhook.test", sender.Object{Type: "secret", ID: list[0].ID}}, []any{got.Event.Type, got.Event.Object})
		require.Equal(t, list[0].ID, sender.TestedSecret(&got.Event))
		_, err = b.Registry.SendTest(t.Context(), s.ID)
		require.NoError(t, err)
		signedBy(t, last(), first, second)

		require.NoError(t, b.Registry.ActivateSecret(t.Context(), "sub_a"))
		_, err = b.Registry.SendSecretTest(t.Context(), s.ID)
		require.NoError(t, err)
		signedBy(t, last(), second)
		b.Publish("sub_a")
		signedBy(t, last(), second, first)

		_, err = b.Registry.SendSecretTest(t.Context(), s.ID)
		require.NoError(t, err)
		third, err := b.Registry.RevokeSecret(t.Context(), "sub_a", signing.Secret{})
		require.NoError(t, err)
		signedBy(t, last(), third)

		require.NoError(t, b.Registry.Pause(t.Context(), s.ID))
		_, err = b.Registry.SendSecretTest(t.Context(), s.ID)
		require.ErrorIs(t, err, sender.ErrStatus)
		_, err = b.Registry.SendSecretTest(t.Context(), "wsub_none")
		require.ErrorIs(t, err, sender.ErrNotFound)
	})
}
