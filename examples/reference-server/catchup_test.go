package main_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	dedup "github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/catchup"
	cursors "github.com/surehook/surehook/receiver/catchup/sqlite"
	"github.com/surehook/surehook/signing"
)

// A customer whom nobody can call reads the server's feed with the library's client,
// and applies each event once, its own and those for everybody.
func TestCatchup(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p)
		c, other := s.customer("c"), s.customer("other")
		var want []string
		for i := range 7 {
			body := object{"type": "order.paid", "object": object{"type": "order", "id": fmt.Sprint(i)}}
			want = append(want, s.post(operatorToken, "/events", body).is(http.StatusCreated)["id"].(string))
			body["subscriber_id"] = other.id
			s.post(operatorToken, "/events", body).is(http.StatusCreated)
		}
		seen := s.pulled(c.token, "", 50, len(want)+1)
		require.Len(t, seen, len(want)+1, "and its own subscriber.created")

		db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "consumer.db")+"?_txlock=immediate&_pragma=busy_timeout(5000)")
		require.NoError(t, err)
		defer db.Close()
		require.NoError(t, dedup.Migrate(t.Context(), db))
		require.NoError(t, cursors.Migrate(t.Context(), db))
		secret, err := signing.ParseSecret(c.secret)
		require.NoError(t, err)
		keys, err := signing.NewKeyring(signing.Key{Secret: secret})
		require.NoError(t, err)
		verifier, err := signing.NewVerifier(keys, nil)
		require.NoError(t, err)
		rcv, err := receiver.New(verifier, receiver.SQL(db, nil), dedup.New(), "server", nil)
		require.NoError(t, err)
		client, err := catchup.NewClient(s.base+"/events", &catchup.ClientConfig{Token: catchup.Token(c.token), AllowUnencrypted: true})
		require.NoError(t, err)
		var applied []string
		catching, err := catchup.New(client, rcv, receiver.SQL(db, nil), cursors.New(), receiver.Fact(func(_ context.Context, _ *sql.Tx, ev receiver.Event) error {
			applied = append(applied, ev.ID)
			return nil
		}), &catchup.Config{Limit: 3, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		report, err := catching.Reconcile(t.Context(), "")
		require.NoError(t, err)
		require.Equal(t, seen, applied)
		require.Equal(t, len(seen), report.Applied)
		require.Equal(t, seen, report.Missed)
		again, err := catching.Reconcile(t.Context(), "")
		require.NoError(t, err)
		require.Equal(t, len(seen), again.Duplicates)
		require.Equal(t, want, applied[len(applied)-len(want):])
	})
}
