package sender_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/sqlite"
)

// service is a sending service with its database and a customer's endpoint.
type service struct {
	db       *sql.DB
	store    *sqlite.Store
	keys     *sender.Keys
	network  sender.Network
	endpoint *httptest.Server
	close    func()
}

func newService(answer http.HandlerFunc) *service {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "app.db")+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(5000)&_txlock=immediate")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := db.Exec("CREATE TABLE invoices (id TEXT PRIMARY KEY, paid INTEGER NOT NULL)"); err != nil {
		log.Fatal(err)
	}
	store, err := sqlite.New(db, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Migrate(context.Background()); err != nil {
		log.Fatal(err)
	}
	keys, err := sender.NewKeys(sender.SealingKey{ID: "2026-11", Key: []byte("0123456789abcdef0123456789abcdef")})
	if err != nil {
		log.Fatal(err)
	}
	endpoint := httptest.NewServer(answer)
	return &service{
		db: db, store: store, keys: keys, endpoint: endpoint,
		network: sender.Network{AllowPrivateNetworks: true}, // the endpoint is on loopback
		close: func() {
			endpoint.Close()
			_ = db.Close()
			_ = os.RemoveAll(dir)
		},
	}
}

func (s *service) subscribe(ctx context.Context) {
	reg, err := sender.NewRegistry(s.store, s.keys, &sender.RegistryConfig{Network: s.network})
	if err != nil {
		log.Fatal(err)
	}
	owner, _, err := reg.CreateSubscriber(ctx, sender.NewSubscriber{})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := reg.Subscribe(ctx, sender.NewSubscription{Subscriber: owner.ID, URL: s.endpoint.URL}); err != nil {
		log.Fatal(err)
	}
}

func (s *service) dispatch(ctx context.Context) dispatch.Stats {
	disp, err := dispatch.New(s.store, s.keys, &dispatch.Config{Network: s.network})
	if err != nil {
		log.Fatal(err)
	}
	stats, err := disp.RunOnce(ctx)
	if err != nil {
		log.Fatal(err)
	}
	return stats
}

// An event is published in the transaction of the change that it reports.
func ExamplePublisher_PublishTx() {
	ctx := context.Background()
	s := newService(func(_ http.ResponseWriter, r *http.Request) { fmt.Println("received", r.Header.Get("Content-Type")) })
	defer s.close()
	s.subscribe(ctx)

	pub, err := sender.NewPublisher(s.store, nil)
	if err != nil {
		log.Fatal(err)
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, "INSERT INTO invoices VALUES ('inv_1', 1)"); err != nil {
		log.Fatal(err)
	}
	ref, err := pub.PublishTx(ctx, tx, sender.Event{
		Type: "invoice.paid", Object: sender.Object{Type: "invoice", ID: "inv_1"}, Data: json.RawMessage(`{"amount":100}`),
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		log.Fatal(err)
	}
	pub.Wake() // a hint to a dispatcher that runs in this process

	fmt.Println("version", ref.Version)
	fmt.Println("delivered", s.dispatch(ctx).Delivered)
	// Output:
	// version 1
	// received application/json
	// delivered 1
}

// InTx begins and ends the transaction. An event that is rolled back is never sent.
func ExamplePublisher_InTx() {
	ctx := context.Background()
	s := newService(func(http.ResponseWriter, *http.Request) {})
	defer s.close()
	s.subscribe(ctx)
	pub, err := sender.NewPublisher(s.store, nil)
	if err != nil {
		log.Fatal(err)
	}
	err = pub.InTx(ctx, func(tx *sql.Tx) error {
		_, err := pub.PublishTx(ctx, tx, sender.Event{Type: "invoice.paid", Object: sender.Object{Type: "invoice", ID: "inv_1"}})
		if err != nil {
			return err
		}
		return errors.New("the card was declined")
	})
	fmt.Println(err)
	fmt.Println("attempted", s.dispatch(ctx).Attempted)
	// Output:
	// the card was declined
	// attempted 0
}

// A producer gives a key if it may publish twice, because it does not know whether the
// first time succeeded.
func ExamplePublisher_Publish() {
	ctx := context.Background()
	s := newService(nil)
	defer s.close()
	pub, err := sender.NewPublisher(s.store, nil)
	if err != nil {
		log.Fatal(err)
	}
	event := sender.Event{Type: "invoice.paid", Object: sender.Object{Type: "invoice", ID: "inv_1"}, IdempotencyKey: "payment-77"}
	for range 2 {
		ref, err := pub.Publish(ctx, event)
		fmt.Println(ref.Version, ref.Duplicate, err)
	}
	event.Object.ID = "inv_2"
	_, err = pub.Publish(ctx, event)
	fmt.Println(errors.Is(err, sender.ErrIdempotencyKey))
	// Output:
	// 1 false <nil>
	// 1 true <nil>
	// true
}
