package sqlite_test

import (
	"bytes"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// A dispatcher makes larger steps on SQLite only while there are no other writers,
// which would wait for them.
func TestStepsAreLargeWhileNobodyElseWrites(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	db := open(t, filepath.Join(t.TempDir(), "steps.db"), "")
	s := newStore(t, db, func() time.Time { return now })
	now = now.Add(time.Hour)
	pub, err := sender.NewPublisher(s, nil)
	require.NoError(t, err)
	others := map[string]func(){
		"InTx": func() { require.NoError(t, s.InTx(t.Context(), func(*sql.Tx) error { return nil })) },
		"Turn": func() {
			done, err := s.WaitToWrite(t.Context())
			require.NoError(t, err)
			done()
		},
		"PublishTx": func() {
			tx, err := db.Begin()
			require.NoError(t, err)
			_, err = pub.PublishTx(t.Context(), tx, sender.Event{Type: "thing.changed", Object: sender.Object{Type: "thing", ID: "1"}})
			require.NoError(t, err)
			require.NoError(t, tx.Commit())
		},
	}
	for name, write := range others {
		require.Equal(t, 512, s.StepSize(), name)
		write()
		require.Zero(t, s.StepSize(), name)
		now = now.Add(999 * time.Millisecond)
		require.Zero(t, s.StepSize(), name)
		now = now.Add(time.Millisecond)
	}
	keys, err := sender.NewKeys(sender.SealingKey{ID: "k", Key: bytes.Repeat([]byte{1}, 32)})
	require.NoError(t, err)
	reg, err := sender.NewRegistry(s, keys, nil)
	require.NoError(t, err)
	_, _, err = reg.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	sub, err := reg.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: "https://example.com/"})
	require.NoError(t, err)
	now = now.Add(time.Second)
	failed := func(values ...any) error { // of a call
		err, _ := values[len(values)-1].(error)
		return err
	}
	for name, read := range map[string]func() error{ // these wait for nobody, and nobody for them
		"Subscriber":    func() error { return failed(reg.Subscriber(t.Context(), "sub_a")) },
		"Subscription":  func() error { return failed(reg.Subscription(t.Context(), sub.ID)) },
		"Subscriptions": func() error { return failed(reg.Subscriptions(t.Context(), "", "", 10)) },
		"Keyring":       func() error { return failed(reg.Keyring(t.Context(), "sub_a")) },
		"Rewrap":        func() error { return failed(reg.Rewrap(t.Context())) },
	} {
		require.NoError(t, read(), name)
		require.Equal(t, 512, s.StepSize(), name)
	}
	for range 3 { // dispatchers' own writes make them no smaller
		_, _, err := s.Step(t.Context(), dispatch.ExpandParams{}, batchOf(nil, 10))
		require.NoError(t, err)
		_, err = s.Sweep(t.Context(), dispatch.SweepParams{Limit: 10})
		require.NoError(t, err)
		require.Equal(t, 512, s.StepSize())
	}
}
