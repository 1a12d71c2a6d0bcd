package receiver_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/signing"
)

// exampleForeign makes the beginning of each example below: a keyring with the secret that
// the sender's dashboard shows, and a verifier with the sender's scheme.
func exampleForeign(scheme signing.Scheme, parse func(string) (signing.Secret, error)) (*signing.Keyring, *signing.Verifier) {
	secret, err := parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		panic(err)
	}
	keys, err := signing.NewKeyring(signing.Key{ID: "2026", Secret: secret})
	if err != nil {
		panic(err)
	}
	verifier, err := signing.NewVerifier(keys, &signing.VerifierConfig{
		Schemes:      []signing.Scheme{scheme},
		Deduplicated: true, // by the receiver; required where a signature covers no time
	})
	if err != nil {
		panic(err)
	}
	return keys, verifier
}

// exampleDeliver stands in for the sender.
func exampleDeliver(rcv *receiver.Receiver[*sql.Tx], w receiver.Work[*sql.Tx], keys *signing.Keyring, scheme signing.Scheme, header http.Header, body string) {
	if err := scheme.Sign(header, "msg_1", time.Now(), []byte(body), keys); err != nil {
		panic(err)
	}
	res, err := rcv.Receive(context.Background(), signing.Message{Method: http.MethodPost, Header: header, Body: []byte(body)}, w)
	fmt.Println(res, err)
}

var discard = slog.New(slog.DiscardHandler)

// Stripe's events have their id, type and time in the body, and their object in
// data.object. They have no versions: an application fetches an object's state
// (receiver.OnThin), or takes each event as a fact, once.
func ExampleEnvelope_stripe() {
	db := exampleDatabase()
	defer db.Close()
	keys, verifier := exampleForeign(signing.Stripe(), signing.ParseTextSecret)

	rcv, err := receiver.New(verifier, receiver.SQL(db, nil), sqlite.New(), "stripe", &receiver.Config{
		Envelope: &receiver.Envelope{DataField: "data.object"},
		Logger:   discard,
	})
	if err != nil {
		panic(err)
	}
	type Invoice struct{ Customer string }
	routes, err := receiver.Router(
		receiver.OnFact("invoice.paid", func(_ context.Context, _ *sql.Tx, ev receiver.Typed[Invoice]) error {
			fmt.Println(ev.ID, "paid by", ev.Data.Customer)
			return nil
		}),
	)
	if err != nil {
		panic(err)
	}
	http.Handle("POST /stripe", rcv.Handler(routes))

	body := fmt.Sprintf(`{"id":"evt_1","type":"invoice.paid","created":%d,"data":{"object":{"customer":"cus_7"}}}`, time.Now().Unix())
	for range 2 {
		exampleDeliver(rcv, routes, keys, signing.Stripe(), http.Header{"Content-Type": {"application/json"}}, body)
	}
	// Output:
	// evt_1 paid by cus_7
	// applied <nil>
	// duplicate <nil>
}

// GitHub signs the body alone. An unsigned header has the type of the event, so the
// receiver must be told to use it. The id in the header is not used at all: events are
// deduplicated by their bytes.
func ExampleEnvelope_gitHub() {
	db := exampleDatabase()
	defer db.Close()
	keys, verifier := exampleForeign(signing.GitHub(), signing.ParseTextSecret)

	rcv, err := receiver.New(verifier, receiver.SQL(db, nil), sqlite.New(), "github", &receiver.Config{
		Envelope: &receiver.Envelope{UnsignedType: true},
		Logger:   discard,
	})
	if err != nil {
		panic(err)
	}
	type Push struct{ Ref string }
	routes, err := receiver.Router(
		receiver.OnFact("push", func(_ context.Context, _ *sql.Tx, ev receiver.Typed[Push]) error {
			fmt.Println("pushed to", ev.Data.Ref)
			return nil
		}),
	)
	if err != nil {
		panic(err)
	}
	http.Handle("POST /github", rcv.Handler(routes))

	for _, event := range []string{"push", "push", "ping"} {
		exampleDeliver(rcv, routes, keys, signing.GitHub(),
			http.Header{"Content-Type": {"application/json"}, "X-Github-Event": {event}}, `{"ref":"refs/heads/main","kind":"`+event+`"}`)
	}
	// Output:
	// pushed to refs/heads/main
	// applied <nil>
	// duplicate <nil>
	// ignored <nil>
}

// Slack posts events as JSON, and commands and interactions as forms.
func ExampleSlackEnvelope() {
	db := exampleDatabase()
	defer db.Close()
	keys, verifier := exampleForeign(signing.Slack(), signing.ParseTextSecret)

	rcv, err := receiver.New(verifier, receiver.SQL(db, nil), sqlite.New(), "slack", &receiver.Config{
		Envelope: receiver.SlackEnvelope(),
		Logger:   discard,
	})
	if err != nil {
		panic(err)
	}
	type Mention struct{ Text string }
	type Command struct{ Command, Text string }
	routes, err := receiver.Router(
		receiver.OnFact("app_mention", func(_ context.Context, _ *sql.Tx, ev receiver.Typed[Mention]) error {
			fmt.Println(ev.ID, ev.Data.Text)
			return nil
		}),
		receiver.OnFact("slash_command", func(_ context.Context, _ *sql.Tx, ev receiver.Typed[Command]) error {
			fmt.Println(ev.Data.Command, ev.Data.Text)
			return nil
		}),
	)
	if err != nil {
		panic(err)
	}
	http.Handle("POST /slack", rcv.Handler(routes))

	exampleDeliver(rcv, routes, keys, signing.Slack(), http.Header{"Content-Type": {"application/json"}},
		`{"type":"event_callback","event_id":"Ev1","event":{"type":"app_mention","text":"hello"}}`)
	exampleDeliver(rcv, routes, keys, signing.Slack(), http.Header{"Content-Type": {"application/x-www-form-urlencoded"}},
		`command=%2Fdeploy&text=now`)
	// Output:
	// Ev1 hello
	// applied <nil>
	// /deploy now
	// applied <nil>
}

// The sender follows Standard Webhooks, and its id is in a signed header. If the data name
// an object and its version, Read finds them, and an older event is not applied after a
// newer one.
func ExampleEnvelope_standardWebhooks() {
	db := exampleDatabase()
	defer db.Close()
	keys, verifier := exampleForeign(signing.StandardWebhooks{}, signing.ParseSecret)

	rcv, err := receiver.New(verifier, receiver.SQL(db, nil), sqlite.New(), "acme", &receiver.Config{
		Envelope: &receiver.Envelope{DataField: "data", Read: func(ev *receiver.Event) error {
			var data struct {
				ID       string
				Revision int64
			}
			if err := json.Unmarshal(ev.Data, &data); err != nil {
				return err
			}
			ev.Object, ev.Version = dedup.Object{Type: "user", ID: data.ID}, data.Revision
			return nil
		}},
		Logger: discard,
	})
	if err != nil {
		panic(err)
	}
	work := receiver.State(func(_ context.Context, _ *sql.Tx, ev receiver.Event) error {
		fmt.Println(ev.ID, ev.Type, ev.Object.ID, ev.Version)
		return nil
	})
	http.Handle("POST /acme", rcv.Handler(work))

	exampleDeliver(rcv, work, keys, signing.StandardWebhooks{}, http.Header{"Content-Type": {"application/json"}},
		`{"type":"user.updated","timestamp":"2026-01-02T03:04:05Z","data":{"id":"usr_1","revision":4}}`)
	// Output:
	// msg_1 user.updated usr_1 4
	// applied <nil>
}
