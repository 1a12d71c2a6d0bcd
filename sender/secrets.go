package sender

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/signing"
)

const (
	defaultOverlap = 24 * time.Hour
	maxOverlap     = 30 * 24 * time.Hour

	// conflictRuns is how often a change is tried that others come before.
	conflictRuns = 5
)

// Rotation adjusts a rotation. A nil one and zero fields mean the defaults.
type Rotation struct {
	// Overlap is how long the secrets before stay valid. The default is 24 h, the
	// most 30 days. To have none, call RevokeSecret instead.
	Overlap time.Duration

	// SignFrom is when the new secret begins to sign where a header has room for one
	// signature. Until then the secret before it does. SignFrom must lie before the end of
	// that one. Zero means at once. It is for owners who verify the header of
	// signing.TimestampBody alone: before that time they add the new secret to the old one.
	// The database's clock decides when it has come. ActivateSecret ends the wait.
	SignFrom time.Time

	// Secret is the new secret. The default is a generated one.
	Secret signing.Secret

	// IfNewest is the id of the secret that the caller takes for the newest: see Secrets. If
	// another one is, nothing is changed. So of several requests to replace a secret, such as
	// a form that is sent twice, one makes a new one. Empty: whichever is the newest.
	IfNewest string
}

// RotateSecret gives a subscriber a new secret. It returns the secret, and until when the
// one before it stays valid. A secret that ends earlier keeps its end.
//
// All deliveries that are claimed from now on are signed twice. The header of
// signing.StandardWebhooks carries signatures with the new secret and with those before
// until the overlap is over: an owner who verifies it changes over when it likes. The
// header of signing.TimestampBody has one signature, with the new secret at once, or from
// Rotation.SignFrom on. An owner who verifies that header alone refuses every delivery from
// then until it knows the new secret: give it a SignFrom by which it can add the new secret
// to the old one. A signing.Verifier without Schemes of its own goes by the former header.
//
// ErrInvalid: the overlap is too long, SignFrom has passed or is not before the end of the
// secret before, the secret cannot sign or is in use already, or four secrets are valid
// already, and one of them would lose its overlap. In an emergency call RevokeSecret,
// which is not refused for their number. ErrNotFound: no such subscriber. ErrSealed: a
// secret that is still valid cannot be opened, see RevokeSecret. ErrNotNewest:
// Rotation.IfNewest is not the newest secret. ErrConflict: it was changed by others again
// and again.
func (r *Registry[Tx]) RotateSecret(ctx context.Context, subscriber string, rotation *Rotation) (secret signing.Secret, previousValidUntil time.Time, err error) {
	err = r.changing(ctx, func(tx Tx) error {
		secret, previousValidUntil, err = r.RotateSecretTx(ctx, tx, subscriber, rotation)
		return err
	})
	return secret, previousValidUntil, err
}

// RotateSecretTx is RotateSecret in the caller's transaction. On ErrConflict it
// can be called again in a new one.
func (r *Registry[Tx]) RotateSecretTx(ctx context.Context, tx Tx, subscriber string, rotation *Rotation) (signing.Secret, time.Time, error) {
	fail := func(err error) (signing.Secret, time.Time, error) { return signing.Secret{}, time.Time{}, err }
	var given Rotation
	if rotation != nil {
		given = *rotation
	}
	now := r.now()
	if given.Overlap == 0 {
		given.Overlap = defaultOverlap
	}
	var errs []error
	if given.Overlap < 0 || given.Overlap > maxOverlap {
		errs = append(errs, fmt.Errorf("%w rotation: the overlap is %v: it must be positive and at most %v", ErrInvalid, given.Overlap, maxOverlap))
	}
	from, err := signFrom(given.SignFrom, now)
	errs = append(errs, err)
	secret, err := r.newSecret(given.Secret, now)
	if err != nil {
		err = fmt.Errorf("%w secret: %w", ErrInvalid, err)
	}
	if err := errors.Join(append(errs, err)...); err != nil {
		return fail(err)
	}
	k, err := r.keyringIf(ctx, tx, subscriber, given.IfNewest, now)
	if err != nil {
		return fail(err)
	}
	for _, s := range inForce(k.Secrets, now) {
		old, err := r.keys.openSecret(subscriber, s)
		if err != nil {
			return fail(err)
		}
		if equalSecrets(old, secret) {
			return fail(errSameSecret(subscriber))
		}
	}
	fresh := r.keys.sealSecret(subscriber, newid.New("sec_", now), secret)
	fresh.NotBefore = from
	secrets, until, err := rotated(k, fresh, given.Overlap, now)
	if err != nil {
		return fail(err)
	}
	if err := r.setSecrets(ctx, tx, k, secrets); err != nil {
		return fail(err)
	}
	return secret, until, nil
}

// ActivateSecret ends the wait of a secret that signs later (Rotation.SignFrom): deliveries
// that are claimed from now on are signed with it, once the owner has it. If none waits, it
// changes nothing. ErrNotFound: no such subscriber. ErrConflict as in RotateSecret.
func (r *Registry[Tx]) ActivateSecret(ctx context.Context, subscriber string) error {
	return r.changing(ctx, func(tx Tx) error { return r.ActivateSecretTx(ctx, tx, subscriber) })
}

// ActivateSecretTx is ActivateSecret in the caller's transaction.
func (r *Registry[Tx]) ActivateSecretTx(ctx context.Context, tx Tx, subscriber string) error {
	k, err := r.store.SubscriberKeyringTx(ctx, tx, subscriber)
	if err != nil {
		return err
	}
	secrets, changed := activated(k, r.now())
	if !changed {
		return nil
	}
	return r.setSecrets(ctx, tx, k, secrets)
}

// ExtendSecret puts off the end of the secret before the newest until a time, for an owner who
// needs longer to give its receiver the new one. It returns the end. If the secret ends then,
// or later, already, nothing is changed: so a request that comes twice extends it once. The old
// secret can last for up to 30 days after the new one was made: SubscriberSecret.LatestEnd.
// Others keep their ends. A part of until below a microsecond is left out.
//
// ErrInvalid: it would last longer than that, or there is no secret before the newest that is
// valid still. ErrNotFound: no such subscriber. ErrConflict as in RotateSecret.
func (r *Registry[Tx]) ExtendSecret(ctx context.Context, subscriber string, until time.Time) (end time.Time, err error) {
	err = r.changing(ctx, func(tx Tx) error {
		end, err = r.ExtendSecretTx(ctx, tx, subscriber, until)
		return err
	})
	return end, err
}

// ExtendSecretTx is ExtendSecret in the caller's transaction.
func (r *Registry[Tx]) ExtendSecretTx(ctx context.Context, tx Tx, subscriber string, until time.Time) (time.Time, error) {
	k, err := r.store.SubscriberKeyringTx(ctx, tx, subscriber)
	if err != nil {
		return time.Time{}, err
	}
	secrets, end, err := extended(k, until, r.now())
	if err != nil || secrets == nil {
		return end, err
	}
	return end, r.setSecrets(ctx, tx, k, secrets)
}

// RetireSecret ends an overlap: only the newest of a subscriber's secrets stays valid, and
// signs from now on, also if it has waited for its SignFrom. ErrNotFound: no such
// subscriber. ErrConflict as in RotateSecret.
func (r *Registry[Tx]) RetireSecret(ctx context.Context, subscriber string) error {
	return r.changing(ctx, func(tx Tx) error { return r.RetireSecretTx(ctx, tx, subscriber) })
}

// RetireSecretTx is RetireSecret in the caller's transaction.
func (r *Registry[Tx]) RetireSecretTx(ctx context.Context, tx Tx, subscriber string) error {
	return r.RetireBeforeTx(ctx, tx, subscriber, "")
}

// RetireBefore is RetireSecret for a caller who has read the secrets: it ends those before the
// newest, whose id is newest. If another one is by now, it ends none: ErrNotNewest. The
// receiver may not have that one yet. Empty: whichever is the newest.
func (r *Registry[Tx]) RetireBefore(ctx context.Context, subscriber, newest string) error {
	return r.changing(ctx, func(tx Tx) error { return r.RetireBeforeTx(ctx, tx, subscriber, newest) })
}

// RetireBeforeTx is RetireBefore in the caller's transaction.
func (r *Registry[Tx]) RetireBeforeTx(ctx context.Context, tx Tx, subscriber, newest string) error {
	now := r.now()
	k, err := r.keyringIf(ctx, tx, subscriber, newest, now)
	if err != nil {
		return err
	}
	secrets := retired(k, now)
	if len(secrets) == len(k.Secrets) {
		return nil
	}
	return r.setSecrets(ctx, tx, k, secrets)
}

// RevokeSecret is for secrets that others have come to know, or that cannot be opened any
// more. It removes all secrets that the subscriber has, and returns the new one: the given
// secret, or a generated one if that is zero. There is no overlap: deliveries that are
// claimed from now on carry signatures with the new one alone, and the owner refuses them
// until it knows it. It does not matter how many secrets are valid.
//
// ErrInvalid: the secret cannot sign, or is one of those that it should replace.
// ErrNotFound: no such subscriber. ErrConflict as in RotateSecret.
func (r *Registry[Tx]) RevokeSecret(ctx context.Context, subscriber string, secret signing.Secret) (fresh signing.Secret, err error) {
	err = r.changing(ctx, func(tx Tx) error {
		fresh, err = r.RevokeSecretTx(ctx, tx, subscriber, secret)
		return err
	})
	return fresh, err
}

// RevokeSecretTx is RevokeSecret in the caller's transaction.
func (r *Registry[Tx]) RevokeSecretTx(ctx context.Context, tx Tx, subscriber string, secret signing.Secret) (signing.Secret, error) {
	now := r.now()
	fresh, err := r.newSecret(secret, now)
	if err != nil {
		return signing.Secret{}, fmt.Errorf("%w secret: %w", ErrInvalid, err)
	}
	k, err := r.store.SubscriberKeyringTx(ctx, tx, subscriber)
	if err != nil {
		return signing.Secret{}, err
	}
	for _, s := range k.Secrets {
		// One that cannot be opened is all the more a reason to replace it.
		if old, err := r.keys.openSecret(subscriber, s); err == nil && equalSecrets(old, fresh) {
			return signing.Secret{}, errSameSecret(subscriber)
		}
	}
	sealed := r.keys.sealSecret(subscriber, newid.New("sec_", now), fresh)
	if err := r.store.SetSecretsTx(ctx, tx, subscriber, k.Version, []SealedSecret{sealed}); err != nil {
		return signing.Secret{}, err
	}
	return fresh, nil
}

// CheckKeys returns an error that matches ErrSealed, and names them, if secrets
// are sealed with keys that the Registry was not given. Dispatcher.Run asks the
// same; call it when a process starts that only registers.
func (r *Registry[Tx]) CheckKeys(ctx context.Context) error { return r.keys.Check(ctx, r.store) }

// changing runs a change in a transaction, and again if somebody else was first.
func (r *Registry[Tx]) changing(ctx context.Context, change func(tx Tx) error) (err error) {
	for range conflictRuns {
		if err = r.store.InTx(ctx, change); !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return err
}

// keyringIf reads a keyring to change it, unless another secret than this is its newest. "" is
// any. SetSecretsTx refuses a change of a keyring that is not as it was read.
func (r *Registry[Tx]) keyringIf(ctx context.Context, tx Tx, subscriber, newest string, now time.Time) (SealedKeyring, error) {
	k, err := r.store.SubscriberKeyringTx(ctx, tx, subscriber)
	if err != nil || newest == "" {
		return k, err
	}
	if valid := inForce(k.Secrets, now); len(valid) == 0 || valid[len(valid)-1].ID != newest {
		return SealedKeyring{}, fmt.Errorf("%w: %q of subscriber %q", ErrNotNewest, newest, subscriber)
	}
	return k, nil
}

// setSecrets stores the secrets of a keyring that was read and changed. Those that it
// keeps are sealed with the current key, because a Rewrap may have sealed them anew since
// the keyring was read. A secret that cannot be opened stays as it is.
func (r *Registry[Tx]) setSecrets(ctx context.Context, tx Tx, k SealedKeyring, secrets []SealedSecret) error {
	for i := range secrets {
		s := &secrets[i]
		if s.Key == r.keys.current {
			continue
		}
		if renewed, err := r.keys.renewFor(boundTo(k.Subscriber, s.ID), s.Sealed); err == nil {
			s.Sealed, s.Key = renewed, r.keys.current
		}
	}
	return r.store.SetSecretsTx(ctx, tx, k.Subscriber, k.Version, secrets)
}

func equalSecrets(a, b signing.Secret) bool {
	return subtle.ConstantTimeCompare([]byte(a.Reveal()), []byte(b.Reveal())) == 1
}

func errSameSecret(subscriber string) error {
	return fmt.Errorf("%w secret: subscriber %q has it already: give a new one, or none to have one generated", ErrInvalid, subscriber)
}

// SecretState says what a secret does.
type SecretState string

// The states of a secret that has not ended. Standard Webhooks' header has a signature by
// each of them.
const (
	SecretWaiting SecretState = "waiting" // an older one signs in its place until SignsFrom
	SecretSigning SecretState = "signing" // it signs where there is one signature
	SecretEnding  SecretState = "ending"  // a newer one signs in its place
)

// SubscriberSecret is a secret of a subscriber that has not ended.
type SubscriberSecret struct {
	ID         string
	Secret     signing.Secret
	State      SecretState
	SignsFrom  time.Time // of one that waits or has waited; zero: from its beginning
	ValidUntil time.Time // zero: no end is set
	LatestEnd  time.Time // up to when ExtendSecret can put off its end; zero: it cannot
}

// Secrets lists the secrets of a subscriber that have not ended, newest first, for
// services that show what a rotation has come to. ErrNotFound: no such subscriber.
// ErrSealed: one cannot be opened.
func (r *Registry[Tx]) Secrets(ctx context.Context, subscriber string) (list []SubscriberSecret, err error) {
	err = r.inReadTx(ctx, func(tx Tx) error {
		list, err = r.secretsTx(ctx, tx, subscriber)
		return err
	})
	return list, err
}

func (r *Registry[Tx]) secretsTx(ctx context.Context, tx Tx, subscriber string) ([]SubscriberSecret, error) {
	k, err := r.store.SubscriberKeyringTx(ctx, tx, subscriber)
	if err != nil {
		return nil, err
	}
	now := r.now()
	sealed := inForce(k.Secrets, now)
	signs := signer(sealed, now)
	list := make([]SubscriberSecret, 0, len(sealed))
	for i, s := range slices.Backward(sealed) {
		secret, err := r.keys.openSecret(subscriber, s)
		if err != nil {
			return nil, err
		}
		state := SecretSigning
		if i > signs {
			state = SecretWaiting
		} else if i < signs {
			state = SecretEnding
		}
		list = append(list, SubscriberSecret{ID: s.ID, Secret: secret, State: state, SignsFrom: s.NotBefore, ValidUntil: s.NotAfter})
	}
	if len(list) > 1 {
		list[1].LatestEnd = latestEnd(sealed, now)
	}
	return list, nil
}

// SigningSecret returns the secret that signs a subscriber's deliveries now, where there
// is one signature. It is for services that show it again to its owner, and for the
// operator's own. ErrNotFound: no such subscriber. ErrSealed: it cannot be opened.
func (r *Registry[Tx]) SigningSecret(ctx context.Context, subscriber string) (secret signing.Secret, err error) {
	err = r.inReadTx(ctx, func(tx Tx) error {
		k, err := r.store.SubscriberKeyringTx(ctx, tx, subscriber)
		if err != nil {
			return err
		}
		now := r.now()
		sealed := inForce(k.Secrets, now)
		i := signer(sealed, now)
		if i < 0 {
			return errNoSecret(subscriber)
		}
		secret, err = r.keys.openSecret(subscriber, sealed[i])
		return err
	})
	return secret, err
}

func errNoSecret(subscriber string) error {
	return fmt.Errorf("%w: subscriber %q has no secret that signs", ErrSealed, subscriber)
}
