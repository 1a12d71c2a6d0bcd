package sender

import "context"

// SecretStore keeps signing secrets, sealed. Registry uses it.
type SecretStore[Tx any] interface {
	SealingStore

	// SetSecretsTx replaces a subscriber's secrets, in their order, and raises the
	// keyring's version, if that is still version. Claims that follow the commit
	// name the new one. ErrConflict: it is another version; ErrNotFound: no such
	// subscriber.
	SetSecretsTx(ctx context.Context, tx Tx, subscriber string, version int64, secrets []SealedSecret) error

	// KeyringsTx lists whole keyrings of which a secret's Key is key, in the order
	// of the subscribers' numbers: up to limit of them, after that of the
	// subscriber after ("" for the first). What it costs depends on the limit, and
	// not on how many secrets have another key. ErrNotFound: no such subscriber.
	KeyringsTx(ctx context.Context, tx Tx, key, after string, limit int) ([]SealedKeyring, error)

	// RewrapTx stores the Sealed and the Key of sealed, for the secret with its ID,
	// and reports whether it did: it changes nothing unless that secret is there
	// and its sealed bytes are still old. The keyring's version stays, since the
	// secret is the same.
	RewrapTx(ctx context.Context, tx Tx, subscriber string, old []byte, sealed SealedSecret) (bool, error)
}

// SealingStore knows what sealing keys are in use. Registry and Dispatcher use it.
type SealingStore interface {
	// SealingKeys lists the ids of the sealing keys that anything is sealed with,
	// each once, in ascending order of their bytes. The first is "" if something
	// is sealed with a key that is not known. What it costs depends on how many
	// keys there are, and not on what they sealed.
	SealingKeys(ctx context.Context) ([]string, error)
}
