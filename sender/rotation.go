package sender

import (
	"fmt"
	"slices"
	"time"
)

// maxSecrets is how many secrets of a subscriber can be valid at a time. Package
// signing looks at no more of a keyring.
const maxSecrets = 4

// rotated puts a new secret in front of a subscriber's others, which end with the
// overlap, or earlier if they did before. It returns the end of the one that was
// the newest.
func rotated(k SealedKeyring, fresh SealedSecret, overlap time.Duration, now time.Time) (secrets []SealedSecret, previousUntil time.Time, err error) {
	end := now.Add(overlap).UTC().Truncate(time.Microsecond)
	for _, s := range inForce(k.Secrets, now) {
		// Their order says which is newer. A time could be ahead of the clock that
		// deliveries are signed by, and keep the new secret from being the newest.
		s.NotBefore = time.Time{}
		if s.NotAfter.IsZero() || s.NotAfter.After(end) {
			s.NotAfter = end
		}
		previousUntil = s.NotAfter
		secrets = append(secrets, s)
	}
	if len(secrets) >= maxSecrets {
		return nil, time.Time{}, fmt.Errorf("%w rotation: %d secrets of subscriber %q are valid, and no more are signed with: wait until one has ended, retire the older ones, or replace all of them without an overlap",
			ErrInvalid, len(secrets), k.Subscriber)
	}
	return append(secrets, fresh), previousUntil, nil
}

// retired leaves nothing but the newest of the secrets that have not ended.
func retired(k SealedKeyring, now time.Time) []SealedSecret {
	secrets := inForce(k.Secrets, now)
	if len(secrets) == 0 {
		return k.Secrets
	}
	return secrets[len(secrets)-1:]
}

// inForce returns the secrets that have not ended, oldest first: in the order of
// signing.Keyring, backwards.
func inForce(secrets []SealedSecret, now time.Time) []SealedSecret {
	secrets = slices.DeleteFunc(slices.Clone(secrets), func(s SealedSecret) bool {
		return !s.NotAfter.IsZero() && now.After(s.NotAfter)
	})
	slices.SortStableFunc(secrets, func(a, b SealedSecret) int { return a.NotBefore.Compare(b.NotBefore) })
	return secrets
}
