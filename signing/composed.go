package signing

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// composed is what the schemes share whose signature and whose text are both in the body, and
// whose text no Description says. Verify reads both from a message, and refuses what it
// cannot read.
type composed struct {
	name      string
	algorithm Algorithm
	key       func(*material) *hmacKey // nil: the secret does not suit
	// read returns the signed text, and the few signatures that may match. ok is false for a
	// message that cannot have been signed.
	read func(m *Message) (text []byte, signatures []digest, ok bool)
}

// Name identifies the scheme.
func (s *composed) Name() string { return s.name }

// ReplayDefence is [DedupAlone].
func (s *composed) ReplayDefence() ReplayDefence { return DedupAlone }

func (s *composed) inBodyAlone() bool { return true }

func (s *composed) check(keys *Keyring) error {
	if err := s.algorithm.allowed(); err != nil {
		return fmt.Errorf("signing: %s: %w", s.name, err)
	}
	if keys != nil && !slices.ContainsFunc(keys.keys, func(k Key) bool { return s.key(k.Secret.m) != nil }) {
		return fmt.Errorf("%w: the keyring has no key with which %s can verify", ErrSecretUnsuited, s.name)
	}
	return nil
}

// Precheck returns nil: the signature is in the body.
func (s *composed) Precheck(http.Header, time.Time, time.Duration) error { return nil }

// Verify implements [Scheme].
func (s *composed) Verify(m Message, keys *Keyring, now time.Time, _ time.Duration) (Verified, error) {
	text, signatures, ok := s.read(&m)
	if !ok {
		return Verified{}, ErrSignatureMismatch
	}
	try := keys.verifying(now)
	failure := ErrNoValidKey
	if try.n > 0 {
		failure = errNoSuitedKey
	}
	size := s.algorithm.size()
	for _, i := range try.index[:try.n] {
		key := s.key(keys.keys[i].Secret.m)
		if key == nil {
			continue
		}
		failure = ErrSignatureMismatch
		var mac digest
		key.end(s.algorithm, key.begin(s.algorithm), text, &mac)
		match := 0
		for j := range signatures {
			match |= subtle.ConstantTimeCompare(mac[:size], signatures[j][:size])
		}
		if match == 1 {
			keys.matched(i)
			return Verified{Scheme: s.name, KeyID: keys.keys[i].ID}, nil
		}
	}
	return Verified{}, failure
}

// Sign returns an error.
func (s *composed) Sign(http.Header, string, time.Time, []byte, *Keyring) error {
	return errors.New("signing: the signature of " + s.name + " is in the body, which Sign does not change")
}
