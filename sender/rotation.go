package sender

import (
	"fmt"
	"slices"
	"time"

	"github.com/surehook/surehook/internal/newid"
)

const (
	// maxSecrets is how many secrets of a subscriber can be valid at a time. Package
	// signing looks at no more of a keyring.
	maxSecrets = 4

	// lateStart is by how much a rotation's SignFrom may have passed. It then means at
	// once: the caller's clock may be behind, and the request may have taken a while.
	lateStart = 5 * time.Minute
)

// rotated puts a new secret in front of a subscriber's others, which end with the
// overlap, or earlier if they did before. The new one signs from its NotBefore on, and
// until then those before it go on as they would have. It returns the end of the one that
// was the newest.
func rotated(k SealedKeyring, fresh SealedSecret, overlap time.Duration, now time.Time) (secrets []SealedSecret, previousUntil time.Time, err error) {
	end := now.Add(overlap).UTC().Truncate(time.Microsecond)
	for _, s := range inForce(k.Secrets, now) {
		// Their order says which is newer. A secret that still waits begins later, and so does
		// one whose beginning is ahead of the clock by which deliveries are signed. Such a
		// beginning would keep the new secret from being the newest.
		if s.NotBefore.After(fresh.NotBefore) {
			s.NotBefore = fresh.NotBefore
		}
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
	// Each secret begins before the one in front of it ends, so that one always signs.
	if !fresh.NotBefore.IsZero() && !fresh.NotBefore.Before(previousUntil) {
		return nil, time.Time{}, errLateSignFrom(k.Subscriber, fresh.NotBefore, previousUntil)
	}
	return append(secrets, fresh), previousUntil, nil
}

func errLateSignFrom(subscriber string, from, previousUntil time.Time) error {
	if previousUntil.IsZero() {
		return fmt.Errorf("%w rotation: SignFrom is %s: subscriber %q has no valid secret that could sign until then: leave SignFrom out, and the new secret signs at once",
			ErrInvalid, moment(from), subscriber)
	}
	return fmt.Errorf("%w rotation: SignFrom is %s, and the secret before ends at %s: give an earlier SignFrom, or a longer overlap",
		ErrInvalid, moment(from), moment(previousUntil))
}

// signFrom is the NotBefore of a new secret. It is zero for one that signs at once, so that
// no clock can keep it from that.
func signFrom(asked, now time.Time) (time.Time, error) {
	switch {
	case asked.IsZero():
		return time.Time{}, nil
	case asked.Before(now.Add(-lateStart)):
		return time.Time{}, fmt.Errorf("%w rotation: SignFrom is %s, and it is %s now: give a time to come, or leave it out, and the new secret signs at once",
			ErrInvalid, moment(asked), moment(now))
	case !asked.After(now):
		return time.Time{}, nil
	}
	return asked.UTC().Truncate(time.Microsecond), nil
}

func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// activated ends the waiting of all secrets that have not ended, so that the newest signs.
// changed is false if none waits.
func activated(k SealedKeyring, now time.Time) (secrets []SealedSecret, changed bool) {
	secrets = inForce(k.Secrets, now)
	for i := range secrets {
		// One that waits no longer by this clock may do so by the one that signs.
		changed = changed || !secrets[i].NotBefore.IsZero()
		secrets[i].NotBefore = time.Time{}
	}
	return secrets, changed
}

// retired leaves nothing but the newest of the secrets that have not ended. It signs from
// now on, whatever it has waited for.
func retired(k SealedKeyring, now time.Time) []SealedSecret {
	secrets, _ := activated(k, now)
	if len(secrets) == 0 {
		return k.Secrets
	}
	return secrets[len(secrets)-1:]
}

// extended puts off the end of the secret before the newest. It returns no secrets if
// nothing is to be changed, because that one ends then, or later, already.
func extended(k SealedKeyring, until, now time.Time) (secrets []SealedSecret, end time.Time, err error) {
	secrets, until = inForce(k.Secrets, now), until.UTC().Truncate(time.Microsecond)
	latest := latestEnd(secrets, now)
	if latest.IsZero() {
		return nil, time.Time{}, fmt.Errorf("%w extension: subscriber %q has one valid secret, and no older one whose end could be put off: begin with RotateSecret", ErrInvalid, k.Subscriber)
	}
	if until.After(latest) {
		return nil, time.Time{}, fmt.Errorf("%w extension: the old secret of subscriber %q would end at %s: an overlap lasts for at most %v, which is up to %s",
			ErrInvalid, k.Subscriber, moment(until), maxOverlap, moment(latest))
	}
	ending := &secrets[len(secrets)-2]
	if !until.After(ending.NotAfter) {
		return nil, ending.NotAfter, nil
	}
	ending.NotAfter = until
	return secrets, until, nil
}

// latestEnd is up to when the secret before the newest may last: for the longest overlap
// since the newest was made. secrets are those in force. Zero: there is no secret before, or
// it has no end.
func latestEnd(secrets []SealedSecret, now time.Time) time.Time {
	n := len(secrets)
	if n < 2 || secrets[n-2].NotAfter.IsZero() {
		return time.Time{}
	}
	made := newid.Time(secrets[n-1].ID)
	if made.IsZero() || made.After(now) { // it was made elsewhere, or by a clock that is ahead
		made = now
	}
	return made.Add(maxOverlap).UTC().Truncate(time.Microsecond)
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

// signer is the index of the secret that signs where there is one signature, in the order
// of inForce; -1 if there is none.
func signer(secrets []SealedSecret, now time.Time) int {
	for i := len(secrets) - 1; i >= 0; i-- {
		if !secrets[i].NotBefore.After(now) {
			return i
		}
	}
	return -1
}
