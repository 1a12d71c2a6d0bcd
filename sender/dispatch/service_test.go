package dispatch_test

import (
	"context"
	"database/sql"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/sqlite"
)

// service is a service that sends: its database, and a customer's endpoint.
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

// inMemory is a store for examples.
func inMemory(now func() time.Time) (*memory.Store, *sender.Keys) {
	store, err := memory.New(&memory.Config{Now: now})
	if err != nil {
		log.Fatal(err)
	}
	keys, err := sender.NewKeys(sender.SealingKey{ID: "2026-11", Key: []byte("0123456789abcdef0123456789abcdef")})
	if err != nil {
		log.Fatal(err)
	}
	return store, keys
}
