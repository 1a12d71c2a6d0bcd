package sender

import (
	"context"
	"fmt"

	"github.com/surehook/surehook/signing"
)

// NewestSecret returns the secret that a subscriber's deliveries are signed with
// now, for services that show it again to whom it belongs, and for the operator's
// own. ErrNotFound: no such subscriber. ErrSealed: it cannot be opened.
func (r *Registry[Tx]) NewestSecret(ctx context.Context, subscriber string) (secret signing.Secret, err error) {
	err = r.store.InTx(ctx, func(tx Tx) error {
		k, err := r.store.SubscriberKeyringTx(ctx, tx, subscriber)
		if err != nil {
			return err
		}
		secrets := retired(k, r.now())
		if len(secrets) == 0 {
			return fmt.Errorf("%w: subscriber %q has no secret", ErrSealed, subscriber)
		}
		secret, err = r.keys.openSecret(subscriber, secrets[0])
		return err
	})
	return secret, err
}
