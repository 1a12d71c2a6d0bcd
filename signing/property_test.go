package signing_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surehook/surehook/signing"
)

const hour = time.Hour

// Over any rotation, what the newest valid key has signed verifies for as long as that
// key is among the four newest that have not ended, and says which key it was.
func TestPropertyRotation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := func(label string) time.Time {
			return rapid.SampledFrom([]time.Time{{}, now.Add(-4 * hour), now.Add(-2 * hour), now, now.Add(2 * hour), now.Add(4 * hour)}).Draw(t, label)
		}
		type numbered struct {
			signing.Key
			place int
		}
		var keys []signing.Key
		var model []numbered
		for i := range rapid.IntRange(1, 7).Draw(t, "keys") {
			text := fmt.Sprintf("secret-of-32-characters-number-%d", i)
			secret, err := signing.ParseTextSecret(text)
			require.NoError(t, err)
			k := signing.Key{ID: fmt.Sprint("key-", i), Secret: secret, NotBefore: at("not before"), NotAfter: at("not after")}
			if !k.NotAfter.IsZero() && k.NotAfter.Before(k.NotBefore) {
				k.NotAfter = time.Time{}
			}
			keys = append(keys, k)
			model = append(model, numbered{k, i})
		}
		keyring, err := signing.NewKeyring(keys...)
		require.NoError(t, err)
		slices.SortFunc(model, func(a, b numbered) int {
			return cmp.Or(b.NotBefore.Compare(a.NotBefore), cmp.Compare(b.place, a.place))
		})
		lives := func(k numbered, at time.Time) bool { return k.NotAfter.IsZero() || !at.After(k.NotAfter) }
		// A few times in a row: which key matched last is remembered.
		for range rapid.IntRange(1, 5).Draw(t, "messages") {
			signedAt := now.Add(time.Duration(rapid.IntRange(-5, 5).Draw(t, "signed at")) * hour)
			readAt := now.Add(time.Duration(rapid.IntRange(-5, 5).Draw(t, "read at")) * hour)
			signer := slices.IndexFunc(model, func(k numbered) bool { return !k.NotBefore.After(signedAt) && lives(k, signedAt) })
			m := signing.Message{Header: http.Header{}, Body: body}
			err := signing.TimestampBody{}.Sign(m.Header, eventID, signedAt, m.Body, keyring)
			if signer < 0 {
				require.Error(t, err, "no key is valid")
				continue
			}
			require.NoError(t, err)
			ahead := 0
			for _, k := range model[:signer] {
				if lives(k, readAt) {
					ahead++
				}
			}
			v, err := signing.TimestampBody{}.Verify(m, keyring, readAt, 24*hour)
			if lives(model[signer], readAt) && ahead < 4 {
				require.NoError(t, err)
				require.Equal(t, model[signer].ID, v.KeyID)
			} else {
				require.Error(t, err)
				if slices.ContainsFunc(model, func(k numbered) bool { return lives(k, readAt) }) {
					require.ErrorIs(t, err, signing.ErrSignatureMismatch)
				}
			}
		}
	})
}

// A message is good for exactly the tolerance, on both sides, whole seconds each.
func TestPropertyWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret, err := signing.ParseSecret(plainText)
		require.NoError(t, err)
		keys, err := signing.NewKeyring(signing.Key{Secret: secret})
		require.NoError(t, err)
		within := time.Duration(rapid.Int64Range(1, 3600).Draw(t, "tolerance")) * time.Second
		signedAt := time.Unix(rapid.Int64Range(1, 9_999_999_999).Draw(t, "signed at"), 0)
		off := rapid.Int64Range(-4000, 4000).Draw(t, "off")
		if edge := int64(within / time.Second); rapid.Bool().Draw(t, "at the edge") {
			off = rapid.SampledFrom([]int64{-edge - 1, -edge, edge, edge + 1}).Draw(t, "off the edge")
		}
		m := signing.Message{Header: http.Header{}, Body: body}
		require.NoError(t, signing.TimestampBody{}.Sign(m.Header, eventID, signedAt, m.Body, keys))
		readAt := signedAt.Add(time.Duration(off) * time.Second)
		_, err = signing.TimestampBody{}.Verify(m, keys, readAt, within)
		if max(off, -off) <= int64(within/time.Second) {
			require.NoError(t, err)
			require.NoError(t, signing.TimestampBody{}.Precheck(m.Header, readAt, within))
		} else {
			require.ErrorIs(t, err, signing.ErrTimestampOutsideWindow)
			require.ErrorIs(t, signing.TimestampBody{}.Precheck(m.Header, readAt, within), signing.ErrTimestampOutsideWindow)
		}
	})
}

// A secret comes back as it was given, and is in nothing that prints it.
func TestPropertySecretsComeBackAndAreNotPrinted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[A-Za-z0-9]{24,64}`).Draw(t, "text")
		secret, err := signing.ParseTextSecret(text)
		require.NoError(t, err)
		require.Equal(t, text, secret.Reveal())
		twin, err := signing.ParseTextSecret(text)
		require.NoError(t, err)
		require.Equal(t, secret.Fingerprint(), twin.Fingerprint())
		holders := []any{secret, &secret, []signing.Secret{secret}, map[string]signing.Secret{"a": secret}, struct{ S signing.Secret }{secret}, signing.Key{Secret: secret}}
		for _, holder := range holders {
			printed := ""
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
				printed += fmt.Sprintf(verb, holder)
			}
			encoded, err := json.Marshal(holder)
			require.NoError(t, err)
			printed += string(encoded)
			for _, form := range []string{text, fmt.Sprintf("%x", text), fmt.Sprintf("%X", text), fmt.Sprintf("%d", []byte(text))} {
				require.NotContains(t, printed, form)
			}
		}
	})
}

// A scheme verifies each body that it has signed. It does not without one of its headers,
// with one of them twice, or with another key.
func TestPropertyEverySchemeTakesItsOwnAndNothingLess(t *testing.T) {
	all, tb := senders(t), t
	rapid.Check(t, func(t *rapid.T) {
		s := all[rapid.IntRange(0, len(all)-1).Draw(t, "scheme")]
		padding := strings.Repeat(" ", rapid.IntRange(0, 40).Draw(t, "padding"))
		m := signing.Message{Header: http.Header{}, Body: []byte(s.body)}
		if strings.HasPrefix(s.body, "{") {
			m.Body = []byte(s.body + padding)
		}
		secret := func(text string) *signing.Keyring {
			keys, err := signing.NewKeyring(signing.Key{Secret: s.secret(tb, text)})
			require.NoError(t, err)
			return keys
		}
		keys := secret(secretA)
		require.NoError(t, s.scheme.Sign(m.Header, eventID, now, m.Body, keys))
		_, err := s.scheme.Verify(m, keys, now, tolerance)
		require.NoError(t, err, s.scheme.Name())
		_, err = s.scheme.Verify(m, secret(strings.ToUpper(secretA)), now, tolerance)
		require.ErrorIs(t, err, signing.ErrSignatureMismatch)

		without := signing.Message{Header: m.Header.Clone(), Body: m.Body}
		without.Header.Del(s.header)
		_, err = s.scheme.Verify(without, keys, now, tolerance)
		require.ErrorIs(t, err, signing.ErrMissingHeader, s.scheme.Name())
		twice := signing.Message{Header: m.Header.Clone(), Body: m.Body}
		twice.Header.Add(s.header, m.Header.Get(s.header))
		_, err = s.scheme.Verify(twice, keys, now, tolerance)
		require.ErrorIs(t, err, signing.ErrRepeatedHeader, s.scheme.Name())
	})
}
