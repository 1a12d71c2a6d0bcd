package sender

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/signing"
)

// SealingKey encrypts secrets at rest. Its id is stored beside what it sealed,
// so that keys can be rotated.
type SealingKey struct {
	ID  string // 1 to 128 bytes of UTF-8 without control characters or '|'
	Key []byte // 32 bytes
}

// Keys seals and opens secrets at rest with AES-256-GCM under random nonces
// (NIST SP 800-38D). What is sealed is bound to its subscriber and its own id,
// so that it cannot be moved to another row. Keys are immutable and safe for
// concurrent use.
type Keys struct {
	current string
	byID    map[string]cipher.AEAD
}

// NewKeys returns Keys that seal with current and open what any of the keys has
// sealed.
func NewKeys(current SealingKey, older ...SealingKey) (*Keys, error) {
	k := &Keys{current: current.ID, byID: map[string]cipher.AEAD{}}
	var errs []error
	for _, key := range append([]SealingKey{current}, older...) {
		if err := ident.Scope(key.ID); err != nil || strings.Contains(key.ID, "|") {
			errs = append(errs, fmt.Errorf("%w: sealing key id %q: it must have 1 to %d bytes of UTF-8 without control characters or '|'", ErrInvalid, key.ID, ident.MaxScope))
			continue
		}
		if _, ok := k.byID[key.ID]; ok {
			errs = append(errs, fmt.Errorf("%w: two sealing keys have the id %q", ErrInvalid, key.ID))
			continue
		}
		if len(key.Key) != 32 {
			errs = append(errs, fmt.Errorf("%w: sealing key %q has %d bytes: AES-256 takes 32", ErrInvalid, key.ID, len(key.Key)))
			continue
		}
		block, err := aes.NewCipher(key.Key)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		k.byID[key.ID] = aead
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return k, nil
}

// SealedSecret is a signing secret as a store keeps it.
type SealedSecret struct {
	ID                  string
	Sealed              []byte
	NotBefore, NotAfter time.Time // as in signing.Key; zero: unbounded
}

// SealedKeyring is the secrets of a subscriber as a store keeps them. Version is
// another number after every change of them.
type SealedKeyring struct {
	Subscriber string // its id
	Version    int64
	Secrets    []SealedSecret
}

// sealedFormat is the first byte of what is sealed.
const sealedFormat = 1

// seal encrypts a subscriber's secret.
func (k *Keys) seal(subscriber, id string, s signing.Secret) []byte {
	return k.sealFor(boundTo(subscriber, id), []byte(s.Reveal()))
}

func (k *Keys) open(subscriber string, s SealedSecret) (signing.Secret, error) {
	text, err := k.openFor(boundTo(subscriber, s.ID), s.Sealed)
	if err != nil {
		return signing.Secret{}, fmt.Errorf("%w (secret %q of %q)", err, s.ID, subscriber)
	}
	return signing.ParseSecret(string(text))
}

// sealFor encrypts plain so that it opens for the same bound alone: format byte,
// length of the key id, key id, nonce, ciphertext, tag.
func (k *Keys) sealFor(bound string, plain []byte) []byte {
	b := append([]byte{sealedFormat, byte(len(k.current))}, k.current...)
	return k.byID[k.current].Seal(b, nil, plain, []byte(bound))
}

func (k *Keys) openFor(bound string, b []byte) ([]byte, error) {
	if len(b) < 2 || b[0] != sealedFormat || len(b) < 2+int(b[1]) || !utf8.Valid(b[2:2+int(b[1])]) {
		return nil, fmt.Errorf("%w: it is not in a format that this version knows", ErrSealed)
	}
	keyID, rest := string(b[2:2+int(b[1])]), b[2+int(b[1]):]
	aead, ok := k.byID[keyID]
	if !ok {
		return nil, fmt.Errorf("%w: it was sealed with the key %q, which is not among those given", ErrSealed, keyID)
	}
	plain, err := aead.Open(nil, nil, rest, []byte(bound))
	if err != nil {
		return nil, fmt.Errorf("%w: it was changed, moved from another row, or sealed with another key of the id %q", ErrSealed, keyID)
	}
	return plain, nil
}

// keyring opens all secrets of a subscriber.
func (k *Keys) keyring(sealed SealedKeyring) (*signing.Keyring, error) {
	keys := make([]signing.Key, len(sealed.Secrets))
	for i, s := range sealed.Secrets {
		secret, err := k.open(sealed.Subscriber, s)
		if err != nil {
			return nil, err
		}
		keys[i] = signing.Key{ID: s.ID, Secret: secret, NotBefore: s.NotBefore, NotAfter: s.NotAfter}
	}
	return signing.NewKeyring(keys...)
}

// boundTo is the additional data of the seal. Neither part can hold the
// separator: ids are of letters, digits, hyphens and underscores.
func boundTo(subscriber, id string) string {
	return "surehook secret|" + subscriber + "|" + id
}
