package inbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"sync"
	"time"

	dedup "github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/inbox"
	"github.com/surehook/surehook/receiver/inbox/sqlite"
	"github.com/surehook/surehook/signing"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// An event is answered as soon as it is recorded, and applied by Run. A failed one is
// tried again.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	db, err := sql.Open("sqlite", "file::memory:?_txlock=immediate") // or a file
	check(err)
	defer db.Close()
	db.SetMaxOpenConns(1) // a database in memory belongs to its connection
	check(dedup.Migrate(ctx, db))
	check(sqlite.Migrate(ctx, db))

	secret := signing.GenerateSecret()
	keys, err := signing.NewKeyring(signing.Key{Secret: secret})
	check(err)
	verifier, err := signing.NewVerifier(keys, nil)
	check(err)
	rcv, err := receiver.New(verifier, receiver.SQL(db, nil), dedup.New(), "shop", &receiver.Config{Logger: quiet})
	check(err)

	attempts := 0
	work := receiver.Fact(func(_ context.Context, _ *sql.Tx, ev receiver.Event) error {
		if attempts++; attempts == 1 {
			fmt.Println("the warehouse is away")
			return fmt.Errorf("the warehouse is away") // tried again, by the Policy; Hooks.Retry tells of it
		}
		fmt.Println("applied", ev.ID)
		stop()
		return nil
	})
	in, err := inbox.New(rcv, receiver.SQL(db, nil), sqlite.New(), work, &inbox.Config{Policy: at1ms, Poll: time.Millisecond, Logger: quiet})
	check(err)
	http.Handle("POST /webhooks", in.Handler())

	body := []byte(`{"id":"evt_1","type":"order.paid","object":{"type":"order","id":"7"},"version":1}`)
	h := http.Header{"Content-Type": {"application/json"}}
	check(signing.Sign(h, signing.DefaultSchemes(), "evt_1", time.Now(), body, keys))
	res, err := in.Receive(ctx, signing.Message{Method: http.MethodPost, Header: h, Body: body})
	fmt.Println(res, err)

	check(in.Run(ctx))
	// Output:
	// recorded <nil>
	// the warehouse is away
	// applied evt_1
}

// Two senders have an inbox each in one database, over the same tables. Each inbox works the
// scope of its receiver.
func Example_twoSenders() {
	ctx, stop := context.WithCancel(context.Background())
	db, err := sql.Open("sqlite", "file::memory:?_txlock=immediate") // or a file
	check(err)
	defer db.Close()
	db.SetMaxOpenConns(1) // a database in memory belongs to its connection
	check(dedup.Migrate(ctx, db))
	check(sqlite.Migrate(ctx, db))

	var applied, running sync.WaitGroup
	for _, scope := range []string{"billing", "shop"} {
		keys, err := signing.NewKeyring(signing.Key{Secret: signing.GenerateSecret()})
		check(err)
		verifier, err := signing.NewVerifier(keys, nil)
		check(err)
		rcv, err := receiver.New(verifier, receiver.SQL(db, nil), dedup.New(), scope, nil)
		check(err)
		in, err := inbox.New(rcv, receiver.SQL(db, nil), sqlite.New(), receiver.Fact(func(_ context.Context, _ *sql.Tx, ev receiver.Event) error {
			fmt.Println(scope, "applied", ev.ID)
			applied.Done()
			return nil
		}), nil)
		check(err)
		http.Handle("POST /webhooks/"+scope, in.Handler())
		running.Go(func() { check(in.Run(ctx)) })

		applied.Add(1)
		body := []byte(`{"id":"evt_1","type":"order.paid","object":{"type":"order","id":"7"},"version":1}`)
		h := http.Header{"Content-Type": {"application/json"}}
		check(signing.Sign(h, signing.DefaultSchemes(), "evt_1", time.Now(), body, keys))
		_, err = in.Receive(ctx, signing.Message{Method: http.MethodPost, Header: h, Body: body})
		check(err)
	}
	applied.Wait()
	stop()
	running.Wait()
	// Unordered output:
	// billing applied evt_1
	// shop applied evt_1
}
