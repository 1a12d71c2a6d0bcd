package main

import (
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

// A cursor that somebody has made up, with the check that it needs, is refused as the cursor
// that it is.
func TestMadeUpCursors(t *testing.T) {
	t.Parallel()
	db, err := openDatabase(t.Context(), options{database: filepath.Join(t.TempDir(), "a.db")}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(db.close)
	s := &server{service: &service{db: db, log: slog.New(slog.DiscardHandler)}}
	keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: make([]byte, keySize)})
	require.NoError(t, err)
	require.NoError(t, s.assemble(keys))
	require.NoError(t, db.migrate(t.Context()))
	operator := caller{id: sender.Operator}
	for list, ask := range map[string]func(p Page) error{
		"subscribers": func(p Page) error {
			_, err := s.listSubscribers(t.Context(), operator, &listSubscribers{Page: p})
			return err
		},
		"subscriptions": func(p Page) error {
			_, err := s.listSubscriptions(t.Context(), operator, &listSubscriptions{Page: p})
			return err
		},
		"deliveries": func(p Page) error {
			_, err := s.listDeliveries(t.Context(), operator, &listDeliveries{Page: p})
			return err
		},
		"notices": func(p Page) error { _, err := s.listNotices(t.Context(), operator, &listNotices{Page: p}); return err },
		"jobs":    func(p Page) error { _, err := s.listJobs(t.Context(), operator, &p); return err },
	} {
		require.NoError(t, ask(Page{Limit: 1}), list)
		for _, raw := range []string{"x", ".", "1.\x00", "1.\xff", "\x00", "9223372036854775808", "9223372036854775808.sub_a", base64.RawURLEncoding.EncodeToString([]byte("j1.0"))} {
			err := ask(Page{Limit: 1, Cursor: outer(list, raw)})
			require.Error(t, err, "%s: %q", list, raw)
			p := refusal(err)
			require.Equal(t, http.StatusUnprocessableEntity, p.Status, "%s: %q: %v", list, raw, errors.Join(err, p.cause))
			require.Equal(t, "query.cursor", p.Errors[0].Location, "%s: %q", list, raw)
		}
	}
}
