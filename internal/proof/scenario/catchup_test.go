package scenario_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/backoff"
	dedup "github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/catchup"
	cursors "github.com/surehook/surehook/receiver/catchup/sqlite"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/feed"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/signing"
)

// A consumer gets posts and reads the sender's feed. Events that were not posted are
// found and reported, and an event that is both posted and read has one effect, in
// either order.
func TestCatchup(t *testing.T) {
	ctx := t.Context()
	quiet := slog.New(slog.DiscardHandler)
	store, err := memory.New(nil)
	require.NoError(t, err)
	keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{1}, 32)})
	require.NoError(t, err)
	network := sender.Network{AllowPrivateNetworks: true}
	registry, err := sender.NewRegistry(store, keys, &sender.RegistryConfig{Network: network})
	require.NoError(t, err)
	pub, err := sender.NewPublisher(store, nil)
	require.NoError(t, err)
	_, secret, err := registry.CreateSubscriber(ctx, sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)

	db, rcv := consumer(t, secret)
	// Every third post is lost on its way.
	var mu sync.Mutex
	posts, posted := 0, make(chan struct{}, 100)
	post := rcv.Handler(receiver.State(effectOf))
	receiving := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		posts++
		lost := posts%3 == 0
		mu.Unlock()
		if lost {
			w.WriteHeader(http.StatusBadGateway)
		} else {
			post.ServeHTTP(w, r)
		}
		posted <- struct{}{}
	}))
	defer receiving.Close()
	_, err = registry.Subscribe(ctx, sender.NewSubscription{Subscriber: "sub_a", URL: receiving.URL})
	require.NoError(t, err)
	dispatcher, err := dispatch.New(store, keys, &dispatch.Config{
		Network: network, Logger: quiet, Policy: dispatch.Policy{Backoff: backoff.Policy{Schedule: backoff.Exponential{Base: time.Hour, Max: time.Hour}}},
	})
	require.NoError(t, err)
	dispatching, stop := context.WithCancel(ctx)
	dispatched := make(chan error, 1)
	go func() { dispatched <- dispatcher.Run(dispatching) }()

	var published []string
	publish := func(object string) {
		ref, err := pub.Publish(ctx, sender.Event{Type: "thing.changed", Object: sender.Object{Type: "thing", ID: object}, Data: json.RawMessage(`{"a":"é <b>"}`)})
		require.NoError(t, err)
		published = append(published, ref.ID)
	}
	for i := range 30 {
		publish(string(rune('a' + i)))
	}
	for range published {
		<-posted
	}
	stop()
	require.NoError(t, <-dispatched)
	had := effectsOf(t, db)
	require.Len(t, had, 20)

	catching, err := catchup.New(feedOf(t, store, "sub_a"), rcv, receiver.SQL(db, nil), cursors.New(), receiver.State(effectOf), &catchup.Config{Logger: quiet})
	require.NoError(t, err)
	report, err := catching.Reconcile(ctx, "")
	require.NoError(t, err)
	require.Equal(t, 10, report.Applied)
	require.Equal(t, 20, report.Duplicates)
	require.Equal(t, len(published), report.Seen, "its own subscriber events are no part of its feed")
	for _, id := range published {
		require.Equal(t, !slices.Contains(had, id), slices.Contains(report.Missed, id))
	}
	require.ElementsMatch(t, published, effectsOf(t, db))

	// The reader follows: an event that is published now comes without a post.
	following, end := context.WithCancel(ctx)
	followed := make(chan error, 1)
	go func() { followed <- catching.Run(following) }()
	publish("late")
	require.Eventually(t, func() bool { return len(effectsOf(t, db)) == len(published) }, time.Minute, 5*time.Millisecond)
	end()
	require.NoError(t, <-followed)
	require.ElementsMatch(t, published, effectsOf(t, db))
}

// The reader reports pruned events as a gap, and reads the events that are kept.
func TestCatchupGap(t *testing.T) {
	ctx := t.Context()
	store, err := memory.New(nil)
	require.NoError(t, err)
	pub, err := sender.NewPublisher(store, nil)
	require.NoError(t, err)
	publish := func() string {
		ref, err := pub.Publish(ctx, sender.Event{Type: "thing.changed", Object: sender.Object{Type: "thing", ID: "a"}})
		require.NoError(t, err)
		_, _, err = store.Step(ctx, dispatch.ExpandParams{Events: 1000, Deliveries: 1000}, dispatch.Batch{})
		require.NoError(t, err)
		return ref.ID
	}
	db, rcv := consumer(t, signing.GenerateSecret())
	publish()
	client := feedOf(t, store, sender.Operator)
	first, err := client.Page(ctx, "", 10, 0)
	require.NoError(t, err)
	publish()
	_, err = store.Prune(ctx, dispatch.PruneParams{Events: time.Now().Add(time.Hour), Limit: 1000})
	require.NoError(t, err)
	kept := publish()
	catching, err := catchup.New(client, rcv, receiver.SQL(db, nil), cursors.New(), receiver.State(effectOf), &catchup.Config{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	report, err := catching.Reconcile(ctx, first.Next)
	require.NoError(t, err)
	require.Len(t, report.Gaps, 1)
	require.Equal(t, first.Next, report.Gaps[0].After)
	require.Equal(t, []string{kept}, report.Missed)
	require.Equal(t, []string{kept}, effectsOf(t, db))
}

// feedOf serves a store's feed to holders of the token, and returns a client.
func feedOf(t *testing.T, store feed.Store, viewer string) *catchup.Client {
	t.Helper()
	reader, err := feed.NewReader(store, &feed.ReaderConfig{Poll: time.Millisecond, PageBytes: 1000})
	require.NoError(t, err)
	events, err := feed.NewHandler(reader, func(r *http.Request) (string, error) {
		if r.Header.Get("Authorization") != "Bearer a-token" {
			return "", feed.ErrUnauthorized
		}
		return viewer, nil
	}, nil)
	require.NoError(t, err)
	server := httptest.NewTLSServer(events)
	t.Cleanup(server.Close)
	client, err := catchup.NewClient(server.URL+"/events", &catchup.ClientConfig{Token: catchup.Token("a-token"), Transport: server.Client().Transport})
	require.NoError(t, err)
	return client
}

// consumer is a database with markers, cursors and effects, and its receiver.
func consumer(t *testing.T, secret signing.Secret) (*sql.DB, *receiver.Receiver[*sql.Tx]) {
	t.Helper()
	db, err := sql.Open("sqlite", crashDSN(filepath.Join(t.TempDir(), "receiver.db")))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	require.NoError(t, dedup.Migrate(t.Context(), db))
	require.NoError(t, cursors.Migrate(t.Context(), db))
	_, err = db.Exec("CREATE TABLE effects (id TEXT NOT NULL)")
	require.NoError(t, err)
	keyring, err := signing.NewKeyring(signing.Key{ID: "1", Secret: secret})
	require.NoError(t, err)
	verifier, err := signing.NewVerifier(keyring, nil)
	require.NoError(t, err)
	rcv, err := receiver.New(verifier, receiver.SQL(db, nil), dedup.New(), "default", &receiver.Config{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return db, rcv
}

func effectOf(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO effects VALUES (?)", ev.ID)
	return err
}

func effectsOf(t *testing.T, db *sql.DB) (ids []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT id FROM effects")
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var id string
		require.NoError(t, rows.Scan(&id))
		ids = append(ids, id)
	}
	require.NoError(t, rows.Err())
	return ids
}
