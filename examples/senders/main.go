// Command senders receives from Stripe, GitHub, Amazon SNS and Google Pub/Sub in one server,
// as docs/four-senders.md shows it. Each event has one effect: a row.
package main

import (
	"context"
	"database/sql"
	"errors"
	"log"
	"net/http"
	"os"

	_ "modernc.org/sqlite"

	"github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/jose"
	"github.com/surehook/surehook/signing/sns"
	"github.com/surehook/surehook/signing/vendors"
)

func main() {
	ctx := context.Background()
	db := must(sql.Open("sqlite", "file:hooks.db?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(5000)&_txlock=immediate"))
	check(migrate(ctx, db))
	amazon := must(sns.New([]string{os.Getenv("SNS_TOPIC")}, nil))
	google := must(jose.PubSub(os.Getenv("PUBSUB_AUDIENCE"), os.Getenv("PUBSUB_ACCOUNT"), must(jose.GoogleKeys(nil))))
	all := must(senders(db, os.Getenv("STRIPE_SECRET"), os.Getenv("GITHUB_SECRET"), amazon, google))
	mux := http.NewServeMux()
	for name, hooks := range all {
		mux.Handle("POST /webhooks/"+name, hooks.Handler(effect(name, amazon)))
		go func() { check(hooks.Run(ctx)) }() // removes the ids of old events
	}
	check(http.ListenAndServe(":8080", mux))
}

func migrate(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS effects (sender TEXT, id TEXT, type TEXT, data TEXT)")
	return errors.Join(err, sqlite.Migrate(ctx, db))
}

// senders makes a receiver for each. The last two have keys of their own, and no secret.
func senders(db *sql.DB, stripe, github string, amazon, google signing.Scheme) (map[string]*receiver.Receiver[*sql.Tx], error) {
	all, problems := map[string]*receiver.Receiver[*sql.Tx]{}, []error{}
	inTx := sqlite.InTx(db) // one for all: they take turns
	for _, s := range []struct {
		name, secret string
		scheme       signing.Scheme
	}{{"stripe", stripe, nil}, {"github", github, nil}, {"sns", "", amazon}, {"google-pubsub", "", google}} {
		hooks, err := sender(inTx, s.name, s.secret, s.scheme)
		all[s.name], problems = hooks, append(problems, err)
	}
	return all, errors.Join(problems...)
}

func sender(inTx receiver.InTx[*sql.Tx], name, secret string, scheme signing.Scheme) (*receiver.Receiver[*sql.Tx], error) {
	vendor, _ := vendors.Find(name)
	var keys *signing.Keyring
	if scheme == nil {
		text, err := vendor.Secret(secret)
		if err != nil {
			return nil, err
		}
		if keys, err = signing.NewKeyring(signing.Key{Secret: text}); err != nil {
			return nil, err
		}
		if scheme, err = vendor.Scheme(""); err != nil {
			return nil, err
		}
	}
	verifier, err := signing.NewVerifier(keys, &signing.VerifierConfig{
		Schemes:      []signing.Scheme{scheme},
		Deduplicated: !vendor.SignsTime(),   // GitHub and Pub/Sub: the receiver does
		UnsignedBody: vendor.UnsignedBody(), // Pub/Sub: TLS alone vouches for the body
	})
	if err != nil {
		return nil, err
	}
	envelope := receiver.VendorEnvelope(vendor)
	envelope.UnsignedType = name == "github" // X-GitHub-Event, for which nobody vouches
	return receiver.New(verifier, inTx, sqlite.New(), name, &receiver.Config{Envelope: envelope})
}

// effect is committed with the event's id, or rolled back with it.
func effect(name string, amazon *sns.Scheme) receiver.Work[*sql.Tx] {
	return receiver.Fact(func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
		if name == "sns" && ev.Type == "SubscriptionConfirmation" {
			return amazon.Confirm(ctx, ev.Body)
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO effects VALUES (?, ?, ?, ?)", name, ev.ID, ev.Type, string(ev.Data))
		return err
	})
}

func must[T any](v T, err error) T { check(err); return v }

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
