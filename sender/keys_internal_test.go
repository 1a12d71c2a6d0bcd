package sender

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surehook/surehook/signing"
)

func sealingKey(id string, b byte) SealingKey {
	return SealingKey{ID: id, Key: bytes.Repeat([]byte{b}, 32)}
}

func TestSeal(t *testing.T) {
	old, err := NewKeys(sealingKey("2025", 1))
	require.NoError(t, err)
	keys, err := NewKeys(sealingKey("2026", 2), sealingKey("2025", 1))
	require.NoError(t, err)
	secret := signing.GenerateSecret()

	sealed := keys.sealSecret("sub_a", "sec_1", secret)
	require.Equal(t, sealingKey("2026", 2).name(), sealed.Key)
	require.NotContains(t, string(sealed.Sealed), secret.Reveal())
	require.NotEqual(t, sealed.Sealed, keys.sealSecret("sub_a", "sec_1", secret).Sealed, "another nonce each time")
	got, err := keys.openSecret("sub_a", sealed)
	require.NoError(t, err)
	require.Equal(t, secret.Reveal(), got.Reveal())
	got, err = keys.openSecret("sub_a", old.sealSecret("sub_a", "sec_1", secret))
	require.NoError(t, err, "what an older key has sealed")
	require.Equal(t, secret.Reveal(), got.Reveal())

	for name, open := range map[string]func() error{
		"moved to another subscriber": func() error { _, err := keys.openSecret("sub_b", sealed); return err },
		"moved to another row": func() error {
			_, err := keys.openSecret("sub_a", SealedSecret{ID: "sec_2", Sealed: sealed.Sealed})
			return err
		},
		"sealed with a lost key": func() error { _, err := old.openSecret("sub_a", sealed); return err },
		"another key of that id": func() error {
			other, err := NewKeys(sealingKey("2026", 9))
			require.NoError(t, err)
			_, err = other.openSecret("sub_a", sealed)
			return err
		},
	} {
		err := open()
		require.ErrorIs(t, err, ErrSealed, name)
		require.NotContains(t, err.Error(), secret.Reveal())
	}
	for cut := range len(sealed.Sealed) {
		_, err := keys.openSecret("sub_a", SealedSecret{ID: "sec_1", Sealed: sealed.Sealed[:cut]})
		require.ErrorIs(t, err, ErrSealed, "cut to %d bytes", cut)
	}
	for i := range sealed.Sealed {
		flipped := bytes.Clone(sealed.Sealed)
		flipped[i] ^= 1
		_, err := keys.openSecret("sub_a", SealedSecret{ID: "sec_1", Sealed: flipped})
		require.ErrorIs(t, err, ErrSealed, "byte %d", i)
	}
}

// Every later version must open a text that was sealed once.
func TestSealedFormat(t *testing.T) {
	keys, err := NewKeys(sealingKey("2025", 1))
	require.NoError(t, err)
	for name, text := range map[string]string{
		"2025":                       "0104323032357fa28fa9aaffb55fa65c6a32e29c2861bc1d02ec3046670077b450a7e1629ffebe36d914b18f0d3e98b3eaa57d41cff0a9b1b401e0c01c74d6f88dd7d7059d5e05d4",
		sealingKey("2025", 1).name(): "010d323032357c3338393665356662d61059c9c70c8aa48866acfac67921282b911f2a553f0f7d07f3d88cc667dd9dad0b59dc53a32ce9777b4d70c247f0569f70bf0f3c848103832ebc52712656b3dc1b",
	} {
		sealed, err := hex.DecodeString(text)
		require.NoError(t, err)
		got, err := keys.openSecret("sub_a", SealedSecret{ID: "sec_1", Sealed: sealed})
		require.NoError(t, err)
		require.Equal(t, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", got.Reveal())
		key, err := keyOf(sealed)
		require.NoError(t, err)
		require.Equal(t, name, key)
		require.NoError(t, keys.missing([]string{key}))
	}

	// A secret that is sealed for one row is of no use in another, and stays bound to its
	// row when it is sealed anew.
	newer, err := NewKeys(sealingKey("2026", 2), sealingKey("2025", 1))
	require.NoError(t, err)
	renewed, err := newer.renewFor("row 1", keys.sealFor("row 1", []byte("plain")))
	require.NoError(t, err)
	key, err := keyOf(renewed)
	require.NoError(t, err)
	require.Equal(t, sealingKey("2026", 2).name(), key)
	plain, err := newer.openFor("row 1", renewed)
	require.NoError(t, err)
	require.Equal(t, "plain", string(plain))
	_, err = newer.openFor("row 2", renewed)
	require.ErrorIs(t, err, ErrSealed)
	_, err = keys.openFor("row 1", renewed)
	require.ErrorContains(t, err, `"2026" (fingerprint 8609a188), which is not among those given`)
	_, err = newer.renewFor("row 2", renewed)
	require.ErrorIs(t, err, ErrSealed)
}

// Other bytes under the same id are another key: it is missed at once, and both can be given.
func TestKeysOfOneID(t *testing.T) {
	before, err := NewKeys(sealingKey("1", 1))
	require.NoError(t, err)
	sealed := before.sealFor("row", []byte("plain"))
	other, err := NewKeys(sealingKey("1", 2))
	require.NoError(t, err)
	err = other.missing([]string{before.current})
	require.ErrorIs(t, err, ErrSealed)
	require.ErrorContains(t, err, `"1" (fingerprint 3896e5fb), for which other bytes were given (fingerprint 8609a188)`)
	both, err := NewKeys(sealingKey("1", 2), sealingKey("1", 1))
	require.NoError(t, err)
	require.NoError(t, both.missing([]string{before.current, other.current}))
	plain, err := both.openFor("row", sealed)
	require.NoError(t, err)
	require.Equal(t, "plain", string(plain))
}

func TestNewKeysRefuses(t *testing.T) {
	_, err := NewKeys(SealingKey{}, sealingKey("a", 1), sealingKey("a", 1), SealingKey{ID: "b", Key: []byte("short")}, sealingKey("c|d", 1))
	require.ErrorIs(t, err, ErrInvalid)
	for _, part := range []string{`sealing key id ""`, `the sealing key "a" is given twice`, `"b" has 5 bytes: AES-256 takes 32: if it is base64 or hex, decode it before`, `id "c|d"`} {
		require.ErrorContains(t, err, part)
	}
}

// A text that was not sealed here does not open. A sealed text opens where it belongs and
// nowhere else.
func FuzzSealed(f *testing.F) {
	keys, err := NewKeys(SealingKey{ID: "new", Key: bytes.Repeat([]byte{1}, 32)}, SealingKey{ID: "old", Key: bytes.Repeat([]byte{2}, 32)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{}, []byte{}, "", uint16(0), byte(0))
	f.Add([]byte{}, []byte("x"), "", uint16(0), byte(3))
	f.Add([]byte{sealedFormat, 3, 'n', 'e', 'w'}, []byte("whsec_x"), "surehook secret|sub_a|key_1", uint16(1), byte(1))
	f.Add([]byte{sealedFormat, 255}, bytes.Repeat([]byte{0}, 200), "surehook certificate|wsub_a", uint16(5), byte(0x80))
	f.Add([]byte{2, 3, 'o', 'l', 'd'}, []byte("x"), "|", uint16(200), byte(3))
	f.Fuzz(func(t *testing.T, stranger, plain []byte, bound string, where uint16, flip byte) {
		if _, err := keys.openFor(bound, stranger); err == nil || !errors.Is(err, ErrSealed) {
			t.Fatalf("opening what nobody sealed: %v", err)
		}
		sealed := keys.sealFor(bound, plain)
		if got, err := keys.openFor(bound, sealed); err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("%q came back as %q: %v", plain, got, err)
		}
		if len(plain) > 8 && bytes.Contains(sealed, plain) {
			t.Fatal("what is sealed can be read")
		}
		if _, err := keys.openFor(bound+"x", sealed); !errors.Is(err, ErrSealed) {
			t.Fatalf("moved to another row it opens: %v", err)
		}
		if flip != 0 {
			changed := bytes.Clone(sealed)
			changed[int(where)%len(changed)] ^= flip
			if _, err := keys.openFor(bound, changed); !errors.Is(err, ErrSealed) {
				t.Fatalf("changed it opens: %v", err)
			}
		}
		if cut := sealed[:int(where)%len(sealed)]; len(cut) < len(sealed) {
			if _, err := keys.openFor(bound, cut); !errors.Is(err, ErrSealed) {
				t.Fatalf("cut off it opens: %v", err)
			}
		}
	})
}

// Through any number of rotations, a sealed text opens as long as its key is there, in its
// row and in no other. After it is sealed anew, it needs only the new key.
func TestPropertySealedSurvivesRotation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := func(i int) SealingKey {
			return SealingKey{ID: fmt.Sprint("key-", i), Key: bytes.Repeat([]byte{byte(i + 1)}, 32)}
		}
		bound := rapid.StringMatching(`[a-z_|]{1,20}`).Draw(t, "bound")
		plain := rapid.SliceOf(rapid.Byte()).Draw(t, "plain")
		rotations := rapid.IntRange(1, 6).Draw(t, "rotations")
		keys, err := NewKeys(key(0))
		require.NoError(t, err)
		sealed, sealedWith := keys.sealFor(bound, plain), 0
		for i := 1; i <= rotations; i++ {
			var older []SealingKey
			for j := range i {
				if rapid.Bool().Draw(t, "kept") {
					older = append(older, key(j))
				}
			}
			keys, err := NewKeys(key(i), older...)
			require.NoError(t, err)
			has := slices.ContainsFunc(older, func(k SealingKey) bool { return k.ID == fmt.Sprint("key-", sealedWith) })
			got, err := keys.openFor(bound, sealed)
			if !has {
				require.ErrorIs(t, err, ErrSealed)
				require.ErrorContains(t, err, fmt.Sprint("key-", sealedWith), "it says which key is asked for")
				require.ErrorIs(t, keys.missing([]string{key(sealedWith).name()}), ErrSealed)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, string(plain), string(got))
			_, err = keys.openFor(bound+"'", sealed)
			require.ErrorIs(t, err, ErrSealed)
			if rapid.Bool().Draw(t, "renewed") {
				sealed, err = keys.renewFor(bound, sealed)
				require.NoError(t, err)
				name, err := keyOf(sealed)
				require.NoError(t, err)
				require.Equal(t, key(i).name(), name)
				sealedWith = i
			}
		}
	})
}

// A key's holder can have sealed anything.
func TestOpenedIsNoSecret(t *testing.T) {
	keys, err := NewKeys(SealingKey{ID: "1", Key: bytes.Repeat([]byte("1"), 32)})
	require.NoError(t, err)
	_, err = keys.Keyring(SealedKeyring{Subscriber: "sub_a", Secrets: []SealedSecret{{ID: "sec_1", Sealed: keys.sealFor(boundTo("sub_a", "sec_1"), []byte("hunter2"))}}})
	require.ErrorIs(t, err, ErrSealed)
	require.ErrorContains(t, err, `"surehook secret|sub_a|sec_1"`)
	require.NotContains(t, err.Error(), "hunter2")
}
