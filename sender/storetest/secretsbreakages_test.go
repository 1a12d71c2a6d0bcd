//go:build !race

package storetest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// secretsBreakages break how a store keeps secrets.
var secretsBreakages = []breakage{
	{"version of secrets not looked at", func(s store) store { return anySecretsVersion{s} }, checks{"secrets/changed in between", "secrets/by several at a time"}},
	{"secrets read as they were first", func(s store) store { return &firstSecrets{store: s} }, checks{"secrets/replaced", "rotation/rotated by several at a time"}},
	{"claims name the keyring's version of before", onClaimed(func(c *dispatch.Claimed) { c.Target.KeyringVersion = 1 }), checks{"secrets/replaced"}},
	{"secrets in another order", func(s store) store { return secretsSorted{s} }, checks{"secrets/replaced"}},
	{"from when a secret signs forgotten", func(s store) store { return signsAtOnce{s} }, checks{"secrets/replaced", "rotation/rotated while events flow"}},
	{"until when a secret is valid forgotten", func(s store) store { return neverEnds{s} }, checks{"secrets/replaced"}},
	{"sealed anew whatever is there", func(s store) store { return rewrapsAny{s} }, checks{"secrets/sealed anew"}},
	{"sealing anew is a change", func(s store) store { return rewrapChanges{s} }, checks{"secrets/sealed anew"}},
	{"sealing key of what is sealed anew forgotten", func(s store) store { return rewrapKeepsKey{s} }, checks{"secrets/sealing keys", "secrets/by sealing key", "secrets/sealed anew"}},
	{"unknown sealing key left out", func(s store) store { return noUnknownKey{s} }, checks{"secrets/sealing keys"}},
	{"sealing keys compared loosely", func(s store) store { return keysLowered{s} }, checks{"secrets/by sealing key"}},
	{"secrets of the deleted are not sealed anew", func(s store) store { return rewrapsLiving{s} }, checks{"life/delete subscriber, sealed anew"}},
	{"keyrings listed in part", func(s store) store { return keyringsInPart{s} }, checks{"secrets/by sealing key"}},
}

type anySecretsVersion struct{ store }

func (b anySecretsVersion) SetSecretsTx(ctx context.Context, tx tx, subscriber string, version int64, secrets []sender.SealedSecret) error {
	k, err := b.store.SubscriberKeyringTx(ctx, tx, subscriber)
	if err != nil {
		return err
	}
	return b.store.SetSecretsTx(ctx, tx, subscriber, k.Version, secrets)
}

// firstSecrets gives the secrets that a subscriber had first, with the keyring's version.
type firstSecrets struct {
	store
	mu    sync.Mutex
	first map[string][]sender.SealedSecret
}

func (b *firstSecrets) SubscriberKeyringTx(ctx context.Context, tx tx, id string) (sender.SealedKeyring, error) {
	k, err := b.store.SubscriberKeyringTx(ctx, tx, id)
	b.mu.Lock()
	defer b.mu.Unlock()
	if first, ok := b.first[id]; ok {
		k.Secrets = first
	} else if err == nil {
		if b.first == nil {
			b.first = map[string][]sender.SealedSecret{}
		}
		b.first[id] = k.Secrets
	}
	return k, err
}

type secretsSorted struct{ store }

func (b secretsSorted) SetSecretsTx(ctx context.Context, tx tx, subscriber string, version int64, secrets []sender.SealedSecret) error {
	secrets = slices.Clone(secrets)
	slices.SortFunc(secrets, func(x, y sender.SealedSecret) int { return strings.Compare(x.ID, y.ID) })
	return b.store.SetSecretsTx(ctx, tx, subscriber, version, secrets)
}

type signsAtOnce struct{ store }

func (b signsAtOnce) SetSecretsTx(ctx context.Context, tx tx, subscriber string, version int64, secrets []sender.SealedSecret) error {
	secrets = slices.Clone(secrets)
	for i := range secrets {
		secrets[i].NotBefore = time.Time{}
	}
	return b.store.SetSecretsTx(ctx, tx, subscriber, version, secrets)
}

type neverEnds struct{ store }

func (b neverEnds) SetSecretsTx(ctx context.Context, tx tx, subscriber string, version int64, secrets []sender.SealedSecret) error {
	secrets = slices.Clone(secrets)
	for i := range secrets {
		secrets[i].NotAfter = time.Time{}
	}
	return b.store.SetSecretsTx(ctx, tx, subscriber, version, secrets)
}

type rewrapsAny struct{ store }

func (b rewrapsAny) RewrapTx(ctx context.Context, tx tx, subscriber string, _ []byte, sealed sender.SealedSecret) (bool, error) {
	k, _ := b.store.SubscriberKeyringTx(ctx, tx, subscriber)
	for _, s := range k.Secrets {
		if s.ID == sealed.ID {
			return b.store.RewrapTx(ctx, tx, subscriber, s.Sealed, sealed)
		}
	}
	return false, nil
}

type rewrapChanges struct{ store }

func (b rewrapChanges) RewrapTx(ctx context.Context, tx tx, subscriber string, old []byte, sealed sender.SealedSecret) (bool, error) {
	done, err := b.store.RewrapTx(ctx, tx, subscriber, old, sealed)
	if k, _ := b.store.SubscriberKeyringTx(ctx, tx, subscriber); done {
		err = errors.Join(err, b.store.SetSecretsTx(ctx, tx, subscriber, k.Version, k.Secrets))
	}
	return done, err
}

type rewrapKeepsKey struct{ store }

func (b rewrapKeepsKey) RewrapTx(ctx context.Context, tx tx, subscriber string, old []byte, sealed sender.SealedSecret) (bool, error) {
	k, _ := b.store.SubscriberKeyringTx(ctx, tx, subscriber)
	for _, s := range k.Secrets {
		if s.ID == sealed.ID {
			sealed.Key = s.Key
		}
	}
	return b.store.RewrapTx(ctx, tx, subscriber, old, sealed)
}

type rewrapsLiving struct{ store }

func (b rewrapsLiving) RewrapTx(ctx context.Context, tx tx, subscriber string, old []byte, sealed sender.SealedSecret) (bool, error) {
	if _, err := b.store.SubscriberTx(ctx, tx, subscriber); err != nil {
		return false, nil //nolint:nilerr // it is what is broken
	}
	return b.store.RewrapTx(ctx, tx, subscriber, old, sealed)
}

type noUnknownKey struct{ store }

func (b noUnknownKey) SealingKeys(ctx context.Context) ([]string, error) {
	keys, err := b.store.SealingKeys(ctx)
	return slices.DeleteFunc(keys, func(key string) bool { return key == "" }), err
}

type keysLowered struct{ store }

func (b keysLowered) KeyringsTx(ctx context.Context, tx tx, key, after string, limit int) ([]sender.SealedKeyring, error) {
	list, err := b.store.KeyringsTx(ctx, tx, key, after, limit)
	if len(list) == 0 && err == nil {
		return b.store.KeyringsTx(ctx, tx, strings.ToLower(key), after, limit)
	}
	return list, err
}

type keyringsInPart struct{ store }

func (b keyringsInPart) KeyringsTx(ctx context.Context, tx tx, key, after string, limit int) ([]sender.SealedKeyring, error) {
	list, err := b.store.KeyringsTx(ctx, tx, key, after, limit)
	for i := range list {
		list[i].Secrets = slices.DeleteFunc(list[i].Secrets, func(s sender.SealedSecret) bool { return s.Key != key })
	}
	return list, err
}
