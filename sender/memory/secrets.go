package memory

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/surehook/surehook/sender"
)

// SetSecretsTx implements sender.Store.
func (s *Store) SetSecretsTx(ctx context.Context, tx *Tx, subscriber string, version int64, secrets []sender.SealedSecret) error {
	return s.in(ctx, tx, func() error {
		sr, err := s.findSubscriber(subscriber)
		if err != nil {
			return err
		}
		if sr.keyring.Version != version {
			return fmt.Errorf("%w: the secrets of subscriber %q", sender.ErrConflict, subscriber)
		}
		set(tx, &sr.keyring, sender.SealedKeyring{Subscriber: subscriber, Version: version + 1, Secrets: cloneSecrets(secrets)})
		return nil
	})
}

// KeyringsTx implements sender.Store. It looks at every subscriber.
func (s *Store) KeyringsTx(ctx context.Context, tx *Tx, key, after string, limit int) (list []sender.SealedKeyring, err error) {
	err = s.in(ctx, tx, func() error {
		from := int64(0)
		if after != "" {
			sr := s.subscriber[after]
			if sr == nil {
				return fmt.Errorf("%w: subscriber %q", sender.ErrNotFound, after)
			}
			from = sr.no
		}
		for _, sr := range s.subscribers[from:] {
			if len(list) >= limit {
				break
			}
			if slices.ContainsFunc(sr.keyring.Secrets, func(sec sender.SealedSecret) bool { return sec.Key == key }) {
				list = append(list, sr.sealed())
			}
		}
		return nil
	})
	return list, err
}

// RewrapTx implements sender.Store.
func (s *Store) RewrapTx(ctx context.Context, tx *Tx, subscriber string, old []byte, sealed sender.SealedSecret) (done bool, err error) {
	err = s.in(ctx, tx, func() error {
		sr := s.subscriber[subscriber]
		if sr == nil {
			return nil
		}
		secrets := cloneSecrets(sr.keyring.Secrets)
		i := slices.IndexFunc(secrets, func(sec sender.SealedSecret) bool {
			return sec.ID == sealed.ID && bytes.Equal(sec.Sealed, old)
		})
		if i < 0 {
			return nil
		}
		secrets[i].Sealed, secrets[i].Key = bytes.Clone(sealed.Sealed), sealed.Key
		set(tx, &sr.keyring.Secrets, secrets)
		done = true
		return nil
	})
	return done, err
}

// SealingKeys implements sender.SealingStore. It looks at every secret.
func (s *Store) SealingKeys(ctx context.Context) (keys []string, err error) {
	err = s.inTx(ctx, func(*Tx) error {
		for _, sr := range s.subscribers {
			for _, sec := range sr.keyring.Secrets {
				keys = append(keys, sec.Key)
			}
		}
		return nil
	})
	slices.Sort(keys)
	return slices.Compact(keys), err
}
