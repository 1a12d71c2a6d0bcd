// Package recipetest holds every recipe to the same answers.
package recipetest

import (
	"context"
	"database/sql"
	"net/http"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/examples/recipes/account"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/signing"
)

// Bed is an application on an empty database, and the sender that posts to it.
type Bed struct {
	App    *account.App
	URL    string // of the database
	Secret signing.Secret
}

// New makes a Bed that lasts as long as the test.
func New(t testing.TB) Bed {
	t.Helper()
	ctx := context.Background()
	db, err := sql.Open("pgx", pgtest.DSN(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	b := Bed{URL: pgtest.With(pgtest.DSN(t), "search_path", pgtest.Schema(t, db)), Secret: signing.GenerateSecret()}
	b.App, err = account.Open(ctx, b.URL, b.Secret.Reveal())
	require.NoError(t, err)
	t.Cleanup(b.App.Close)
	return b
}

// Answer is what the sender sees.
type Answer struct {
	Status int
	Body   string
}

// Post sends a request the way its recipe's platform would bring it.
type Post func(*receivertest.Request) Answer

// PostTo posts over a connection.
func PostTo(t testing.TB, url string) Post {
	return func(r *receivertest.Request) Answer {
		t.Helper()
		a, err := r.Post(t.Context(), url)
		require.NoError(t, err)
		return Answer{Status: a.Status, Body: string(a.Body)}
	}
}

// Check posts what a sender may send and what others may: every answer must be the
// receiver's own, and each payment must have been counted once.
func Check(t *testing.T, b Bed, post Post) {
	t.Helper()
	snd := receivertest.NewSender(t, b.Secret, nil)
	ev := receivertest.NewEvent("invoice", "in_1", 2)
	// The payer's name is more than ASCII, and its JSON is not as Go would write it:
	// only the bytes that were posted verify.
	ev.Type, ev.Data = "invoice.paid", map[string]any{"account": "acc_1", "cents": 4200, "payer": "Zoë & Søn <€>"}
	paid := func(cents int64) {
		t.Helper()
		got, err := b.App.Paid(t.Context(), "acc_1")
		require.NoError(t, err)
		require.Equal(t, cents, got)
	}
	forged := Answer{http.StatusUnauthorized, `{"error":"Unauthorized"}`}
	require.Equal(t, forged, post(snd.Request(ev).WrongSecret()))
	require.Equal(t, forged, post(snd.Request(ev).Tampered()))
	require.Equal(t, http.StatusBadRequest, post(snd.Request(ev).Repeated("Webhook-Signature")).Status, "a header that is there twice is never guessed at")
	paid(0)
	require.Equal(t, Answer{http.StatusOK, result(receiver.Applied)}, post(snd.Request(ev)))
	paid(4200)
	require.Equal(t, Answer{http.StatusOK, result(receiver.Duplicate)}, post(snd.Request(ev)))
	// An earlier payment of the same invoice comes late. It counts, too.
	earlier := receivertest.NewEvent("invoice", "in_1", 1)
	earlier.Type, earlier.Data = ev.Type, ev.Data
	require.Equal(t, Answer{http.StatusOK, result(receiver.Applied)}, post(snd.Request(earlier)))
	require.Equal(t, Answer{http.StatusOK, result(receiver.Duplicate)}, post(snd.Request(earlier)))
	paid(8400)
	other := receivertest.NewEvent("invoice", "in_1", 3)
	other.Type = "invoice.sent"
	require.Equal(t, Answer{http.StatusOK, result(receiver.Ignored)}, post(snd.Request(other)))
}

func result(r receiver.Result) string { return `{"result":"` + string(r) + `"}` }
