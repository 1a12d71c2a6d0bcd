package signing

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// maxLiveKeys bounds the MACs that one request can cost.
const maxLiveKeys = 4

// Key is a secret and the time in which it is used. A zero time is no bound, and
// both bounds belong to the time.
type Key struct {
	// ID is the key's name in [Verified].KeyID. Defaults to the secret's fingerprint.
	ID     string
	Secret Secret
	// NotBefore is the time from which the key is the one that signs. A scheme whose header
	// has a list of signatures, one of each key, adds the key's signature before that time,
	// because the receiver may know the key already. NotBefore does not matter to verifying:
	// a receiver whose clock is behind must not refuse a signature of a new secret.
	NotBefore time.Time
	// NotAfter ends both signing and verifying.
	NotAfter time.Time
}

// Keyring holds the keys of one subscriber, on either side. To rotate a secret,
// make a new Keyring with the new key and the previous one, whose NotAfter is the
// end of the overlap. Give the new key a NotBefore to let the receivers have it before it
// signs. A Keyring does not change and is safe for concurrent use.
//
// The newest key is the one with the latest NotBefore. If several are equal, it is the
// one given last. At any time, only the four newest valid keys are tried.
type Keyring struct {
	keys    []Key // newest first
	bounded bool  // whether a key has an end, so that the time matters to verifying
	// last is the index of the key that matched last, which is tried first: during
	// a rotation that saves a MAC over the whole body. It is only a hint.
	last atomic.Int32
}

// NewKeyring refuses an empty list, a zero Secret, two keys with one ID, and a key
// that is never valid, and reports all problems at once.
func NewKeyring(keys ...Key) (*Keyring, error) {
	if len(keys) == 0 {
		return nil, errors.New("signing: a keyring needs at least one key")
	}
	var problems []error
	seen := make(map[string]int, len(keys))
	ring := &Keyring{keys: slices.Clone(keys)}
	for i := range ring.keys {
		k := &ring.keys[i]
		if k.Secret.m == nil {
			problems = append(problems, fmt.Errorf("signing: key %d has no secret: make one with ParseSecret or GenerateSecret", i))
			continue
		}
		if k.ID == "" {
			k.ID = k.Secret.Fingerprint()
		}
		if first, repeated := seen[k.ID]; repeated {
			problems = append(problems, fmt.Errorf("signing: keys %d and %d have the same ID, %q", first, i, k.ID))
		} else {
			seen[k.ID] = i
		}
		ring.bounded = ring.bounded || !k.NotAfter.IsZero()
		if !k.NotAfter.IsZero() && k.NotAfter.Before(k.NotBefore) {
			problems = append(problems, fmt.Errorf("signing: key %d, %q, is never valid: its NotAfter lies before its NotBefore", i, k.ID))
		}
	}
	if problems != nil {
		return nil, errors.Join(problems...)
	}
	slices.Reverse(ring.keys)
	slices.SortStableFunc(ring.keys, func(a, b Key) int { return b.NotBefore.Compare(a.NotBefore) })
	return ring, nil
}

// Only returns a keyring with one of the keys alone, without its NotBefore, so that it signs
// at once. It returns nil if no key with that ID is valid at that time, or later.
func (k *Keyring) Only(id string, at time.Time) *Keyring {
	if k == nil {
		return nil
	}
	for _, key := range k.keys {
		if key.ID == id && (key.NotAfter.IsZero() || !at.After(key.NotAfter)) {
			key.NotBefore = time.Time{}
			return &Keyring{keys: []Key{key}, bounded: !key.NotAfter.IsZero()}
		}
	}
	return nil
}

// candidates are indexes into a keyring's keys, in the order in which to try them.
type candidates struct {
	index [maxLiveKeys]int
	n     int
}

// signing returns the keys to sign with at that time, newest first.
func (k *Keyring) signing(at time.Time) (c candidates) {
	if k == nil {
		return c
	}
	for i := range k.keys {
		if !k.keys[i].NotBefore.After(at) {
			c.add(k, i, at)
		}
	}
	return c
}

// listed returns the keys whose signatures go into a list: those of signing, and after
// them the ones that do not sign yet. Without one that signs there are none.
func (k *Keyring) listed(at time.Time) candidates {
	c := k.signing(at)
	if c.n == 0 {
		return c
	}
	for i := range k.keys {
		if k.keys[i].NotBefore.After(at) {
			c.add(k, i, at)
		}
	}
	return c
}

// verifying returns the keys to verify with at that time: the one that matched
// last, then newest first.
func (k *Keyring) verifying(now time.Time) (c candidates) {
	if k == nil {
		return c
	}
	for i := range k.keys {
		c.add(k, i, now)
	}
	last := int(k.last.Load())
	for i := 1; i < c.n; i++ {
		if c.index[i] == last {
			copy(c.index[1:i+1], c.index[:i])
			c.index[0] = last
			break
		}
	}
	return c
}

func (c *candidates) add(k *Keyring, i int, at time.Time) {
	if end := k.keys[i].NotAfter; c.n < maxLiveKeys && (end.IsZero() || !at.After(end)) {
		c.index[c.n] = i
		c.n++
	}
}

func (k *Keyring) matched(i int) {
	if k.last.Load() != int32(i) { // an unconditional store would make all cores share the line
		k.last.Store(int32(i))
	}
}
