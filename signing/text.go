package signing

import (
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"fmt"
	"time"
)

// Text is a text and how it is signed. It is for a [Scheme] of another package, which makes
// the text itself and leaves the keys where they are.
type Text struct {
	Algorithm Algorithm
	Key       KeyForm // of an HMAC
	// KeyID limits it to the key with that ID. "" means every key that is valid and suits.
	KeyID string
	Bytes []byte
}

// VerifyText returns the ID of the key whose signature of the text this is. At most four
// keys are tried, unless the text names one. It returns [ErrNoValidKey] if none is valid and
// suits, and [ErrSignatureMismatch]. MACs are compared in constant time.
func (k *Keyring) VerifyText(t *Text, signature []byte, now time.Time) (keyID string, err error) {
	try := k.candidates(t, now)
	failure := ErrNoValidKey
	if try.n > 0 {
		failure = errNoSuitedKey
	}
	for _, i := range try.index[:try.n] {
		secret := k.keys[i].Secret.m
		if !t.suits(secret) {
			continue
		}
		failure = ErrSignatureMismatch
		if t.matches(secret, signature) {
			k.matched(i)
			return k.keys[i].ID, nil
		}
	}
	return "", failure
}

// SignText signs the text with the newest key that is valid at that time and can, or with the
// one that the text names, and returns the key's ID too. It returns [ErrNoValidKey] or
// [ErrSecretUnsuited]. The keys of ECDSA and RSA that a Keyring takes are public ones, which do
// not sign.
func (k *Keyring) SignText(t *Text, at time.Time) (signature []byte, keyID string, err error) {
	try := k.signing(at)
	if t.KeyID != "" {
		try = k.candidates(t, at)
	}
	if try.n == 0 {
		return nil, "", ErrNoValidKey
	}
	for _, i := range try.index[:try.n] {
		secret, id := k.keys[i].Secret.m, k.keys[i].ID
		switch {
		case t.Algorithm == Ed25519 && secret.sign != nil:
			return secret.sign(t.Bytes), id, nil
		case t.Algorithm < keyedAlgorithms && t.suits(secret):
			mac := t.mac(secret)
			return mac[:t.Algorithm.size()], id, nil
		}
	}
	return nil, "", fmt.Errorf("%w: no key of the keyring can make such a signature", ErrSecretUnsuited)
}

// Suits reports whether a key of the keyring, or the one that the text names, can verify such
// a text.
func (k *Keyring) Suits(t *Text) bool {
	if k == nil {
		return false
	}
	for i := range k.keys {
		if (t.KeyID == "" || t.KeyID == k.keys[i].ID) && t.suits(k.keys[i].Secret.m) {
			return true
		}
	}
	return false
}

func (k *Keyring) candidates(t *Text, now time.Time) (c candidates) {
	if t.KeyID == "" || k == nil {
		return k.verifying(now)
	}
	for i := range k.keys {
		if k.keys[i].ID == t.KeyID {
			c.add(k, i, now)
		}
	}
	return c
}

func (t *Text) suits(m *material) bool {
	switch t.Algorithm {
	case HMACSHA256, HMACSHA512, HMACSHA1:
		return m.hmacKey(t.Key) != nil && t.Algorithm.allowed() == nil
	case Ed25519:
		return m.verify != nil
	case ECDSAP256:
		return m.ecdsa != nil
	case RSASHA256, RSAPSSSHA512:
		return m.rsa != nil
	}
	return false
}

func (t *Text) matches(m *material, signature []byte) bool {
	switch t.Algorithm {
	case Ed25519:
		return m.verify(t.Bytes, signature)
	case ECDSAP256:
		sum := sha256.Sum256(t.Bytes)
		return m.ecdsa(sum[:], signature)
	case RSASHA256:
		sum := sha256.Sum256(t.Bytes)
		return m.rsa(RSASHA256, sum[:], signature)
	case RSAPSSSHA512:
		sum := sha512.Sum512(t.Bytes)
		return m.rsa(RSAPSSSHA512, sum[:], signature)
	}
	mac := t.mac(m)
	return subtle.ConstantTimeCompare(mac[:t.Algorithm.size()], signature) == 1
}

func (t *Text) mac(m *material) (mac digest) {
	key := m.hmacKey(t.Key)
	key.end(t.Algorithm, key.begin(t.Algorithm), t.Bytes, &mac)
	return mac
}

// hmacKey returns nil for a secret that has no such form.
func (m *material) hmacKey(form KeyForm) *hmacKey {
	switch form {
	case TextKey:
		return m.text
	case DecodedKey:
		return m.decoded
	case HexKey:
		return m.hex
	case Base64URLKey:
		return m.base64URL
	}
	return nil
}
