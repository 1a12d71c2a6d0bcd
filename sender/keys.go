package sender

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/signing"
)

// SealingKey encrypts secrets at rest. Its id and a fingerprint of its bytes are stored
// beside what it sealed, so that keys can be rotated, and other bytes under the same id
// are another key. Printing or logging it shows the id alone. Encoding it, in JSON for
// example, does not hide the key.
type SealingKey struct {
	ID  string // 1 to 128 bytes of UTF-8 without control characters or '|'
	Key []byte // 32 bytes
}

// String shows the id alone.
func (k SealingKey) String() string { return fmt.Sprintf("[sealing key %q]", k.ID) }

// Format writes String, whatever the verb.
func (k SealingKey) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.String()) }

// LogValue shows the id alone.
func (k SealingKey) LogValue() slog.Value { return slog.StringValue(k.String()) }

// name is what is stored of the key beside what it sealed.
func (k SealingKey) name() string {
	sum := sha256.Sum256(append([]byte("surehook sealing key|"), k.Key...))
	return k.ID + "|" + hex.EncodeToString(sum[:4])
}

// Keys seals and opens secrets at rest with AES-256-GCM under random nonces
// (NIST SP 800-38D). A sealed secret is bound to its subscriber and its own id, so that
// it cannot be moved to another row. Keys are immutable and safe for concurrent use.
type Keys struct {
	current string // its name
	byName  map[string]cipher.AEAD
}

// NewKeys returns Keys that seal with current and open what any of the keys has
// sealed.
func NewKeys(current SealingKey, older ...SealingKey) (*Keys, error) {
	k := &Keys{current: current.name(), byName: map[string]cipher.AEAD{}}
	var errs []error
	for _, key := range append([]SealingKey{current}, older...) {
		if err := ident.Scope(key.ID); err != nil || strings.Contains(key.ID, "|") {
			errs = append(errs, fmt.Errorf("%w: sealing key id %q: it must have 1 to %d bytes of UTF-8 without control characters or '|'", ErrInvalid, key.ID, ident.MaxScope))
			continue
		}
		if _, ok := k.byName[key.name()]; ok {
			errs = append(errs, fmt.Errorf("%w: the sealing key %q is given twice", ErrInvalid, key.ID))
			continue
		}
		if len(key.Key) != 32 {
			errs = append(errs, fmt.Errorf("%w: sealing key %q has %d bytes: AES-256 takes 32: if it is base64 or hex, decode it before", ErrInvalid, key.ID, len(key.Key)))
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
		k.byName[key.name()] = aead
		if _, ok := k.byName[key.ID]; !ok {
			k.byName[key.ID] = aead // of what was sealed before names had a fingerprint
		}
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
	Key                 string    // the sealing key's id and fingerprint; empty: not known
	NotBefore, NotAfter time.Time // as in signing.Key; zero: unbounded
}

// SealedKeyring is the secrets of a subscriber as a store keeps them, in their
// order. Version rises with every change of them, and stays when they are sealed anew.
type SealedKeyring struct {
	Subscriber string // its id
	Version    int64
	Secrets    []SealedSecret
}

// sealedFormat is the first byte of what is sealed.
const sealedFormat = 1

// sealFor encrypts what belongs to one row, which bound names: format byte, length
// of the key's name, its name, nonce, ciphertext, tag.
func (k *Keys) sealFor(bound string, plain []byte) []byte {
	b := append([]byte{sealedFormat, byte(len(k.current))}, k.current...)
	return k.byName[k.current].Seal(b, nil, plain, []byte(bound))
}

// openFor decrypts what was sealed for the same row. Its errors match ErrSealed.
func (k *Keys) openFor(bound string, sealed []byte) ([]byte, error) {
	name, err := keyOf(sealed)
	if err != nil {
		return nil, fmt.Errorf("%w: %q", err, bound)
	}
	aead, ok := k.byName[name]
	if !ok {
		return nil, fmt.Errorf("%w: %q was sealed with the key %s, which is not among those given", ErrSealed, bound, k.lost(name))
	}
	plain, err := aead.Open(nil, nil, sealed[2+len(name):], []byte(bound))
	if err != nil {
		return nil, fmt.Errorf("%w: %q was changed, or moved from another row", ErrSealed, bound)
	}
	return plain, nil
}

// renewFor seals again, with the current key, what any of the keys has sealed.
func (k *Keys) renewFor(bound string, sealed []byte) ([]byte, error) {
	plain, err := k.openFor(bound, sealed)
	if err != nil {
		return nil, err
	}
	return k.sealFor(bound, plain), nil
}

// keyOf returns the name of the key that something was sealed with.
func keyOf(sealed []byte) (string, error) {
	if len(sealed) < 2 || sealed[0] != sealedFormat || len(sealed) < 2+int(sealed[1]) || !utf8.Valid(sealed[2:2+int(sealed[1])]) {
		return "", fmt.Errorf("%w: it is not in a format that this version knows", ErrSealed)
	}
	return string(sealed[2 : 2+int(sealed[1])]), nil
}

// Check returns an error that matches ErrSealed if a signing secret is sealed with a key
// that is not among these. It does not look at the headers and certificates of
// subscriptions.
func (k *Keys) Check(ctx context.Context, store SealingStore) error {
	names, err := store.SealingKeys(ctx)
	if err != nil {
		return err
	}
	return k.missing(names)
}

// missing returns an error that matches ErrSealed unless all of the keys are here.
// A name that is not known is passed over.
func (k *Keys) missing(names []string) error {
	var lost []string
	for _, name := range names {
		if _, ok := k.byName[name]; !ok && name != "" {
			lost = append(lost, k.lost(name))
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return fmt.Errorf("%w: of the keys that secrets are sealed with, these are not among those given: %s; give them to NewKeys as older keys (SenderConfig.OlderKeys of package surehook), "+
		"and Registry.Rewrap seals everything with the current one; if one is lost for good, Registry.RevokeSecret replaces a subscriber's secrets", ErrSealed, strings.Join(lost, ", "))
}

// lost is the name of a key that is not here, for people.
func (k *Keys) lost(name string) string {
	id, print, _ := strings.Cut(name, "|")
	text := fmt.Sprintf("%q (fingerprint %s)", id, print)
	for given := range k.byName {
		if other, is := strings.CutPrefix(given, id+"|"); is {
			text += fmt.Sprintf(", for which other bytes were given (fingerprint %s)", other)
		}
	}
	return text
}

// sealSecret returns a subscriber's secret as a store keeps it.
func (k *Keys) sealSecret(subscriber, id string, s signing.Secret) SealedSecret {
	return SealedSecret{ID: id, Sealed: k.sealFor(boundTo(subscriber, id), []byte(s.Reveal())), Key: k.current}
}

func (k *Keys) openSecret(subscriber string, s SealedSecret) (signing.Secret, error) {
	text, err := k.openFor(boundTo(subscriber, s.ID), s.Sealed)
	if err != nil {
		return signing.Secret{}, err
	}
	secret, err := signing.ParseSecret(string(text))
	if err != nil { // its text is not that of what was sealed
		return signing.Secret{}, fmt.Errorf("%w: %q: what was sealed is no secret: %w", ErrSealed, boundTo(subscriber, s.ID), err)
	}
	return secret, nil
}

// Keyring opens all secrets of a subscriber. Its errors match ErrSealed.
func (k *Keys) Keyring(sealed SealedKeyring) (*signing.Keyring, error) {
	keys := make([]signing.Key, len(sealed.Secrets))
	for i, s := range sealed.Secrets {
		secret, err := k.openSecret(sealed.Subscriber, s)
		if err != nil {
			return nil, err
		}
		keys[i] = signing.Key{ID: s.ID, Secret: secret, NotBefore: s.NotBefore, NotAfter: s.NotAfter}
	}
	return signing.NewKeyring(keys...)
}

// boundTo is the additional data of a secret's seal. Neither part can hold the
// separator: ids are of letters, digits, hyphens and underscores.
func boundTo(subscriber, id string) string { return "surehook secret|" + subscriber + "|" + id }

// SealingStore knows what sealing keys are in use. Registry and Dispatcher use it.
type SealingStore interface {
	// SealingKeys lists the sealing keys that signing secrets are sealed with, as
	// SealedSecret.Key names them, each once, in ascending order of their bytes. The first is
	// "" if a secret is sealed with a key that is not known. The cost depends on the number of
	// keys, and not on what they sealed. It does not look into settings.
	SealingKeys(ctx context.Context) ([]string, error)
}
