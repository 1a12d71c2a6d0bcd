package signing_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
)

func TestNewKeyringReportsAllProblems(t *testing.T) {
	_, err := signing.NewKeyring()
	require.Error(t, err)

	s := signing.GenerateSecret()
	_, err = signing.NewKeyring(
		signing.Key{ID: "zero"},
		signing.Key{ID: "twice", Secret: s},
		signing.Key{ID: "twice", Secret: signing.GenerateSecret()},
		signing.Key{ID: "never", Secret: s, NotBefore: now, NotAfter: now.Add(-time.Second)},
	)
	require.ErrorContains(t, err, "key 0 has no secret")
	require.ErrorContains(t, err, `keys 1 and 2 have the same ID, "twice"`)
	require.ErrorContains(t, err, `key 3, "never", is never valid`)

	_, err = signing.NewKeyring(signing.Key{Secret: s}, signing.Key{Secret: s})
	require.ErrorContains(t, err, "same ID")
}

func TestSigningTakesTheNewestValidKey(t *testing.T) {
	a, b, c := signing.GenerateSecret(), signing.GenerateSecret(), signing.GenerateSecret()
	for _, test := range []struct {
		what string
		keys []signing.Key
		want string
	}{
		{"one", []signing.Key{{ID: "a", Secret: a}}, "a"},
		{"equal times: the last", []signing.Key{{ID: "a", Secret: a}, {ID: "b", Secret: b}, {ID: "c", Secret: c}}, "c"},
		{"latest start, wherever it is", []signing.Key{
			{ID: "a", Secret: a, NotBefore: now.Add(-time.Hour)},
			{ID: "b", Secret: b, NotBefore: now.Add(-time.Second)},
			{ID: "c", Secret: c},
		}, "b"},
		{"a start is inclusive", []signing.Key{{ID: "a", Secret: a, NotBefore: now}, {ID: "b", Secret: b}}, "a"},
		{"not yet", []signing.Key{{ID: "a", Secret: a}, {ID: "b", Secret: b, NotBefore: now.Add(1)}}, "a"},
		{"an end is inclusive", []signing.Key{{ID: "a", Secret: a}, {ID: "b", Secret: b, NotAfter: now}}, "b"},
		{"ended", []signing.Key{{ID: "a", Secret: a}, {ID: "b", Secret: b, NotAfter: now.Add(-1)}}, "a"},
	} {
		m := signed(t, signing.TimestampBody{}, ring(t, test.keys...), now)
		for _, k := range test.keys {
			v, err := signing.TimestampBody{}.Verify(m, ring(t, signing.Key{ID: k.ID, Secret: k.Secret}), now, tolerance)
			if k.ID == test.want {
				require.NoError(t, err, test.what)
				require.Equal(t, test.want, v.KeyID)
			} else {
				require.ErrorIs(t, err, signing.ErrSignatureMismatch, test.what)
			}
		}
	}
}

// A list of signatures has one of each key that has not ended, also of a key that does not
// sign yet: the receiver may have it already, and may not have the other one any more.
func TestAListIsSignedWithTheKeysThatWait(t *testing.T) {
	old := signing.Key{ID: "old", Secret: signing.GenerateSecret(), NotAfter: now.Add(time.Hour)}
	next := signing.Key{ID: "next", Secret: signing.GenerateSecret(), NotBefore: now.Add(time.Minute)}
	keys := ring(t, next, old)
	every, err := signing.NewDescribed(signing.Description{Name: "list", SignatureHeader: "X-List", SignatureLabel: "s", Signed: "{body}", SignWith: signing.EveryKey})
	require.NoError(t, err)
	for _, c := range []struct {
		what string
		at   time.Duration
		by   []signing.Key // where there is one signature, by the first
	}{
		{"while it waits", 0, []signing.Key{old, next}},
		{"until its time", time.Minute - 1, []signing.Key{old, next}},
		{"from its time on", time.Minute, []signing.Key{next, old}},
		{"until the old one ends", time.Hour, []signing.Key{next, old}},
		{"afterwards", time.Hour + 1, []signing.Key{next}},
	} {
		for _, scheme := range []struct {
			signing.Scheme
			header, separator string
			most              int
		}{
			{signing.TimestampBody{}, "Webhook-Hmac-Sha256", "", 1},
			{signing.GitHub(), "X-Hub-Signature-256", "", 1},
			{signing.StandardWebhooks{}, "Webhook-Signature", " ", 4},
			{every, "X-List", ",", 4},
		} {
			header := func(keys *signing.Keyring) string {
				return signed(t, scheme.Scheme, keys, now.Add(c.at)).Header[scheme.header][0]
			}
			var want []string
			for _, k := range c.by[:min(scheme.most, len(c.by))] {
				want = append(want, header(ring(t, signing.Key{Secret: k.Secret})))
			}
			require.Equal(t, strings.Join(want, scheme.separator), header(keys), "%s: %s", c.what, scheme.Name())
		}
	}
	ended := signing.Key{ID: "ended", Secret: signing.GenerateSecret(), NotAfter: now.Add(-1)}
	require.ErrorIs(t, signing.StandardWebhooks{}.Sign(http.Header{}, eventID, now, body, ring(t, next, ended)), signing.ErrNoValidKey,
		"one that waits does not take the place of one that has ended")
}

func TestNoKeyIsValid(t *testing.T) {
	s := signing.GenerateSecret()
	ended := ring(t, signing.Key{Secret: s, NotAfter: now.Add(-1)})
	future := ring(t, signing.Key{Secret: s, NotBefore: now.Add(1)})
	for _, scheme := range append(signing.DefaultSchemes(), signing.GitHub()) {
		m := signed(t, scheme, ring(t, signing.Key{Secret: s}), now)
		for _, keys := range []*signing.Keyring{ended, nil, {}} {
			_, err := scheme.Verify(m, keys, now, tolerance)
			require.ErrorIs(t, err, signing.ErrNoValidKey)
			require.ErrorIs(t, scheme.Sign(m.Header, eventID, now, body, keys), signing.ErrNoValidKey)
		}
		require.ErrorIs(t, scheme.Sign(m.Header, eventID, now, body, future), signing.ErrNoValidKey)
		// The receiver's clock may be behind: a key that is not to be signed with yet verifies.
		_, err := scheme.Verify(m, future, now, tolerance)
		require.NoError(t, err)
	}
}

// The hint of the last match must change the order only, never the answer.
func TestVerifyingFindsTheKeyWhateverMatchedLast(t *testing.T) {
	var keys []signing.Key
	for _, id := range []string{"a", "b", "c", "d"} {
		keys = append(keys, signing.Key{ID: id, Secret: signing.GenerateSecret()})
	}
	keys[2].NotAfter = now.Add(time.Hour)
	all := ring(t, keys...)
	for _, scheme := range signing.DefaultSchemes() {
		for _, i := range []int{0, 3, 0, 2, 1, 1, 2, 3} {
			m := signed(t, scheme, ring(t, keys[i]), now)
			v, err := scheme.Verify(m, all, now, tolerance)
			require.NoError(t, err)
			require.Equal(t, keys[i].ID, v.KeyID)
		}
		// The key that matched last has ended meanwhile.
		m := signed(t, scheme, ring(t, keys[2]), now)
		_, err := scheme.Verify(m, all, now, tolerance)
		require.NoError(t, err)
		m = signed(t, scheme, ring(t, signing.Key{Secret: keys[2].Secret}), now.Add(time.Hour+time.Second))
		_, err = scheme.Verify(m, all, now.Add(time.Hour+time.Second), tolerance)
		require.ErrorIs(t, err, signing.ErrSignatureMismatch)
	}
}

func TestTheKeyThatMatchedLastIsTriedFirst(t *testing.T) {
	older := signing.Key{ID: "older", Secret: signing.GenerateSecret()}
	newer := signing.Key{ID: "newer", Secret: signing.GenerateSecret()}
	for _, scheme := range signing.DefaultSchemes() {
		keys := ring(t, older, newer)
		byBoth := signed(t, signing.StandardWebhooks{}, keys, now)
		for _, key := range []signing.Key{older, newer, older} {
			_, err := scheme.Verify(signed(t, scheme, ring(t, key), now), keys, now, tolerance)
			require.NoError(t, err)
			v, err := signing.StandardWebhooks{}.Verify(byBoth, keys, now, tolerance)
			require.NoError(t, err)
			require.Equal(t, key.ID, v.KeyID, scheme.Name())
		}
	}
}

func TestFourKeysAreLookedAt(t *testing.T) {
	var keys []signing.Key
	for i := range 6 {
		keys = append(keys, signing.Key{Secret: signing.GenerateSecret(), NotBefore: now.Add(time.Duration(i-10) * time.Hour)})
	}
	all := ring(t, keys...)
	for i, key := range keys {
		m := signed(t, signing.TimestampBody{}, ring(t, key), now)
		_, err := signing.TimestampBody{}.Verify(m, all, now, tolerance)
		if i < 2 {
			require.ErrorIs(t, err, signing.ErrSignatureMismatch, "key %d", i)
		} else {
			require.NoError(t, err, "key %d", i)
		}
	}
}

func TestAKeyringIsSafeForConcurrentUse(t *testing.T) {
	a := signing.Key{ID: "a", Secret: signing.GenerateSecret()}
	b := signing.Key{ID: "b", Secret: signing.GenerateSecret()}
	both := ring(t, a, b)
	var workers sync.WaitGroup
	for i := range 8 {
		key := []signing.Key{a, b}[i%2]
		scheme := signing.DefaultSchemes()[i/2%2]
		workers.Go(func() {
			m := signing.Message{Header: map[string][]string{}, Body: body}
			for range 50 {
				if err := scheme.Sign(m.Header, eventID, now, body, ring(t, key)); err != nil {
					t.Error(err)
				}
				if v, err := scheme.Verify(m, both, now, tolerance); err != nil || v.KeyID != key.ID {
					t.Error(v, err)
				}
			}
		})
	}
	workers.Wait()
}

func TestOnlyOneKey(t *testing.T) {
	a, b := signing.GenerateSecret(), signing.GenerateSecret()
	k := ring(t, signing.Key{ID: "a", Secret: a, NotAfter: now}, signing.Key{ID: "b", Secret: b, NotBefore: now.Add(time.Hour)})
	for id, secret := range map[string]signing.Secret{"a": a, "b": b} {
		for _, scheme := range []signing.Scheme{signing.StandardWebhooks{}, signing.TimestampBody{}} {
			m := signed(t, scheme, k.Only(id, now), now)
			_, err := scheme.Verify(m, ring(t, signing.Key{Secret: secret}), now, tolerance)
			require.NoError(t, err, id)
			require.LessOrEqual(t, len(strings.Fields(m.Header.Get("Webhook-Signature"))), 1, "signatures")
		}
	}
	require.Nil(t, k.Only("a", now.Add(1)), "it has ended")
	require.Nil(t, k.Only("c", now))
	require.Nil(t, (*signing.Keyring)(nil).Only("a", now))
}
