package sqlite_test

import (
	"bytes"
	"database/sql"
	"io/fs"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/migrate"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/sqlite"
	"github.com/surehook/surehook/signing"
)

// Secrets from before the sealing key's column are still opened, and are found by
// a rewrap.
func TestSecretsFromBeforeTheSealingKey(t *testing.T) {
	ctx := t.Context()
	key := func(id string) sender.SealingKey {
		return sender.SealingKey{ID: id, Key: bytes.Repeat([]byte(id), 32)}
	}
	keys, err := sender.NewKeys(key("1"))
	require.NoError(t, err)

	// What is sealed does not depend on the tables.
	modern := newStore(t, open(t, path(t), fit), time.Now)
	reg, err := sender.NewRegistry(modern, keys, nil)
	require.NoError(t, err)
	own := signing.GenerateSecret()
	_, _, err = reg.CreateSubscriber(ctx, sender.NewSubscriber{ID: "sub_a", Secret: own})
	require.NoError(t, err)
	var k sender.SealedKeyring
	require.NoError(t, modern.InTx(ctx, func(tx *sql.Tx) (err error) {
		k, err = modern.SubscriberKeyringTx(ctx, tx, "sub_a")
		return err
	}))

	db := open(t, path(t), fit)
	start, err := fs.ReadFile(sqlite.Migrations(), "001_start.sql")
	require.NoError(t, err)
	require.NoError(t, migrate.SQLite(ctx, db, "sender", fstest.MapFS{"001_start.sql": {Data: start}}))
	_, err = db.ExecContext(ctx, `INSERT INTO surehook_subscribers (id, created_at, keyring_version, deleted) VALUES ('sub_a', 1, 1, 0)`)
	require.NoError(t, err)
	_, err = db.ExecContext(ctx, `INSERT INTO surehook_secrets (subscriber, position, id, sealed, not_before, not_after) VALUES (1, 0, ?, ?, 0, 0)`,
		k.Secrets[0].ID, k.Secrets[0].Sealed)
	require.NoError(t, err)

	s := newStore(t, db, time.Now)
	inUse, err := s.SealingKeys(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{""}, inUse)
	reg, err = sender.NewRegistry(s, keys, nil)
	require.NoError(t, err)
	require.NoError(t, reg.CheckKeys(ctx), "which key it is, is not known")
	_, err = reg.Keyring(ctx, "sub_a")
	require.NoError(t, err)

	newer, err := sender.NewKeys(key("2"), key("1"))
	require.NoError(t, err)
	reg, err = sender.NewRegistry(s, newer, nil)
	require.NoError(t, err)
	done, err := reg.Rewrap(ctx)
	require.NoError(t, err)
	require.Equal(t, 1, done)
	inUse, err = s.SealingKeys(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"2"}, inUse)
	_, err = reg.Keyring(ctx, "sub_a")
	require.NoError(t, err)
}
