package receiver_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/signing"
)

// A database of one file would be opened the same way.
func exampleDatabase() *sql.DB {
	db, err := sql.Open("sqlite", "file::memory:?_txlock=immediate")
	if err != nil {
		panic(err)
	}
	db.SetMaxOpenConns(1) // a database in memory belongs to its connection
	if err := sqlite.Migrate(context.Background(), db); err != nil {
		panic(err)
	}
	if _, err := db.Exec("CREATE TABLE customers (id TEXT PRIMARY KEY, name TEXT NOT NULL)"); err != nil {
		panic(err)
	}
	return db
}

func exampleReceiver(db *sql.DB) (*receiver.Receiver[*sql.Tx], *signing.Keyring) {
	secret, err := signing.ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		panic(err)
	}
	keys, err := signing.NewKeyring(signing.Key{ID: "2026", Secret: secret})
	if err != nil {
		panic(err)
	}
	verifier, err := signing.NewVerifier(keys, nil)
	if err != nil {
		panic(err)
	}
	rcv, err := receiver.New(verifier, receiver.SQL(db, nil), sqlite.New(), "default", &receiver.Config{
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		panic(err)
	}
	return rcv, keys
}

// A sender posts this.
func exampleMessage(keys *signing.Keyring, body string) signing.Message {
	h := http.Header{"Content-Type": {"application/json"}}
	if err := signing.Sign(h, signing.DefaultSchemes(), "evt_1", time.Now(), []byte(body), keys); err != nil {
		panic(err)
	}
	return signing.Message{Method: http.MethodPost, Header: h, Body: []byte(body)}
}

func examplePost(url string, m signing.Message) {
	req, err := http.NewRequest(m.Method, url, strings.NewReader(string(m.Body)))
	if err != nil {
		panic(err)
	}
	req.Header = m.Header
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		panic(err)
	}
	defer func() { _ = res.Body.Close() }()
	answer, _ := io.ReadAll(res.Body)
	fmt.Println(res.StatusCode, string(answer))
}

const exampleBody = `{"id":"evt_1","type":"customer.renamed","object":{"type":"customer","id":"cus_7"},"version":3,"data":{"name":"Ada"}}`

func rename(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
	var data struct{ Name string }
	if err := json.Unmarshal(ev.Data, &data); err != nil {
		return receiver.Permanent(err)
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO customers (id, name) VALUES (?, ?)
		ON CONFLICT (id) DO UPDATE SET name = excluded.name`, ev.Object.ID, data.Name)
	return err
}

func ExampleReceiver_Handler() {
	db := exampleDatabase()
	defer db.Close()
	rcv, keys := exampleReceiver(db)

	mux := http.NewServeMux()
	mux.Handle("POST /webhooks", rcv.Handler(receiver.State(rename)))
	srv := httptest.NewServer(mux)
	defer srv.Close()

	examplePost(srv.URL+"/webhooks", exampleMessage(keys, exampleBody))
	examplePost(srv.URL+"/webhooks", exampleMessage(keys, exampleBody))
	forged := exampleMessage(keys, exampleBody)
	forged.Body = []byte(strings.Replace(exampleBody, "Ada", "Eve", 1))
	examplePost(srv.URL+"/webhooks", forged)
	// Output:
	// 200 {"result":"applied"}
	// 200 {"result":"duplicate"}
	// 401 {"error":"Unauthorized"}
}

func ExampleReceiver_WrapState() {
	db := exampleDatabase()
	defer db.Close()
	rcv, keys := exampleReceiver(db)

	// This handler was there before.
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tx, ev, ok := rcv.From(r.Context())
		if !ok {
			http.Error(w, "not behind the receiver", http.StatusInternalServerError)
			return
		}
		if err := rename(r.Context(), tx, ev); err != nil {
			http.Error(w, "try again", http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, "renamed")
	})
	srv := httptest.NewServer(rcv.WrapState(next))
	defer srv.Close()

	examplePost(srv.URL, exampleMessage(keys, exampleBody))
	examplePost(srv.URL, exampleMessage(keys, exampleBody))
	// Output:
	// 201 renamed
	// 200 {"result":"duplicate"}
}

// A function-as-a-service gets bytes and returns values.
func ExampleReceiver_Receive() {
	db := exampleDatabase()
	defer db.Close()
	rcv, keys := exampleReceiver(db)

	invoke := func(m signing.Message) receiver.Answer {
		res, err := rcv.Receive(context.Background(), m, receiver.State(rename))
		return receiver.AnswerTo(res, err)
	}
	answer := invoke(exampleMessage(keys, exampleBody))
	fmt.Println(answer.Status, string(answer.Body))
	answer = invoke(exampleMessage(keys, `{"id":"evt_2"}`))
	fmt.Println(answer.Status, string(answer.Body))
	// Output:
	// 200 {"result":"applied"}
	// 400 {"error":"Bad Request"}
}

// An event that can never be applied is set aside. It is applied by hand once its cause is
// mended.
func ExamplePermanent() {
	db := exampleDatabase()
	defer db.Close()
	rcv, keys := exampleReceiver(db)
	ctx := context.Background()

	refuse := func(context.Context, *sql.Tx, receiver.Event) error {
		return receiver.Permanent(errors.New("names without a surname are not allowed"))
	}
	res, err := rcv.Receive(ctx, exampleMessage(keys, exampleBody), receiver.State(refuse))
	fmt.Println(res, err)

	res, err = rcv.ApplyDeadLetter(ctx, "default", "evt_1", receiver.State(rename))
	fmt.Println(res, err)
	// Output:
	// dead_lettered <nil>
	// applied <nil>
}

// Events come from the application's own queue, where nobody can be answered. An event that
// can never be applied is kept, and does not hold up the others.
func ExampleReceiver_SetAside() {
	db := exampleDatabase()
	defer db.Close()
	rcv, _ := exampleReceiver(db)
	work := receiver.Fact(func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO customers (id, name) VALUES (?, '')", ev.Object.ID)
		return err
	})
	ctx := context.Background()
	for _, body := range []string{
		`{"id":"evt_1","type":"customer.made","object":{"type":"customer","id":"cus_1"}}`,
		`{"id":"evt_2","type":"customer.made","object":{"type":"customer","id":"cus_2"},"version":1}`,
	} {
		event := receiver.Trusted[*sql.Tx]{Body: []byte(body)}
		res, err := rcv.Apply(ctx, event, work)
		if failed, ok := errors.AsType[*receiver.Error](err); ok && failed.Permanent() {
			fmt.Println(failed)
			res, err = rcv.SetAside(ctx, event, work, failed)
		}
		fmt.Println(res, err)
	}
	// Output:
	// receiver: decode: missing: version
	// dead_lettered <nil>
	// applied <nil>
}

// The event says only that a customer changed. Its source has the present state.
func ExampleThin() {
	db := exampleDatabase()
	defer db.Close()
	rcv, keys := exampleReceiver(db)

	type customer struct{ Name string }
	fetch := func(ctx context.Context, ev receiver.Event) (receiver.Snapshot[customer], error) {
		// Here: GET https://source.example/customers/{ev.Object.ID}
		return receiver.Snapshot[customer]{Version: 5, State: customer{Name: "Grace"}}, nil
	}
	store := func(ctx context.Context, tx *sql.Tx, ev receiver.Event, now receiver.Snapshot[customer]) error {
		if now.Gone {
			_, err := tx.ExecContext(ctx, "DELETE FROM customers WHERE id = ?", ev.Object.ID)
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO customers (id, name) VALUES (?, ?)
			ON CONFLICT (id) DO UPDATE SET name = excluded.name`, ev.Object.ID, now.State.Name)
		return err
	}
	srv := httptest.NewServer(rcv.Handler(receiver.Thin(fetch, store)))
	defer srv.Close()

	const body = `{"id":%q,"type":"customer.updated","object":{"type":"customer","id":"cus_7"},"version":%d}`
	examplePost(srv.URL, exampleMessage(keys, fmt.Sprintf(body, "evt_3", 3)))
	examplePost(srv.URL, exampleMessage(keys, fmt.Sprintf(body, "evt_4", 4)))
	examplePost(srv.URL, exampleMessage(keys, fmt.Sprintf(body, "evt_6", 6)))
	// Output:
	// 200 {"result":"applied"}
	// 200 {"result":"stale"}
	// 503 {"error":"Service Unavailable"}
}

// Each type of event has a function of its own, with its data decoded.
func ExampleRouter() {
	db := exampleDatabase()
	defer db.Close()
	rcv, keys := exampleReceiver(db)

	type customer struct{ Name string }
	routes, err := receiver.Router(
		receiver.OnState("customer.renamed", func(ctx context.Context, tx *sql.Tx, ev receiver.Typed[customer]) error {
			fmt.Println("renamed:", ev.Object.ID, ev.Data.Name)
			return nil
		}),
		receiver.OnThin("customer.*",
			func(ctx context.Context, ev receiver.Event) (receiver.Snapshot[customer], error) {
				return receiver.Snapshot[customer]{Version: 9, State: customer{Name: "Grace"}}, nil // it asks its source
			},
			func(ctx context.Context, tx *sql.Tx, ev receiver.Event, now receiver.Snapshot[customer]) error {
				fmt.Println("fetched:", ev.Object.ID, now.State.Name)
				return nil
			}),
	)
	if err != nil {
		panic(err)
	}
	srv := httptest.NewServer(rcv.Handler(routes))
	defer srv.Close()

	const body = `{"id":%q,"type":%q,"object":{"type":"customer","id":"cus_7"},"version":%d,"data":{"name":"Ada"}}`
	examplePost(srv.URL, exampleMessage(keys, fmt.Sprintf(body, "evt_1", "customer.renamed", 3)))
	examplePost(srv.URL, exampleMessage(keys, fmt.Sprintf(body, "evt_2", "customer.moved", 4)))
	examplePost(srv.URL, exampleMessage(keys, fmt.Sprintf(body, "evt_3", "invoice.paid", 10)))
	// Output:
	// renamed: cus_7 Ada
	// 200 {"result":"applied"}
	// fetched: cus_7 Grace
	// 200 {"result":"applied"}
	// 200 {"result":"ignored"}
}
