package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/surehook/surehook/dedup/postgres"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/signing"
)

// exampleT stands in for the *testing.T of a test.
type exampleT struct{ testing.TB }

func (exampleT) Helper()           {}
func (exampleT) Fatal(args ...any) { log.Fatal(args...) }

const exampleBody = `{"id":"evt_1","type":"customer.renamed","object":{"type":"customer","id":"cus_7"},"version":3,"data":{"name":"Ada"}}`

// pgx commits the receiver's effects, markers and versions together. A transaction can lose
// against another one, which the isolation level allows. Then the receiver runs it again.
func Example() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, pgtest.DSN(exampleT{}))
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, `
		DROP SCHEMA IF EXISTS surehook_example CASCADE; CREATE SCHEMA surehook_example;
		CREATE TABLE surehook_example.customers (id text PRIMARY KEY, name text NOT NULL)`); err != nil {
		log.Fatal(err)
	}
	cfg := &postgres.Config{Schema: "surehook_example"}
	if err := postgres.MigratePool(ctx, pool, cfg); err != nil {
		log.Fatal(err)
	}

	store, err := postgres.New(cfg)
	if err != nil {
		log.Fatal(err)
	}
	inTx := postgres.InTx(pool, pgx.TxOptions{IsoLevel: pgx.Serializable})
	keys, err := signing.NewKeyring(signing.Key{ID: "2026", Secret: signing.GenerateSecret()})
	if err != nil {
		log.Fatal(err)
	}
	verifier, err := signing.NewVerifier(keys, nil)
	if err != nil {
		log.Fatal(err)
	}
	rcv, err := receiver.New(verifier, inTx, store, "billing", &receiver.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	srv := httptest.NewServer(rcv.Handler(receiver.State(func(ctx context.Context, tx pgx.Tx, ev receiver.Event) error {
		var data struct{ Name string }
		if err := json.Unmarshal(ev.Data, &data); err != nil {
			return receiver.Permanent(err)
		}
		_, err := tx.Exec(ctx, `INSERT INTO surehook_example.customers (id, name) VALUES ($1, $2)
			ON CONFLICT (id) DO UPDATE SET name = excluded.name`, ev.Object.ID, data.Name)
		return err
	})))
	defer srv.Close()

	for range 2 { // like a sender that missed the answer
		req, err := http.NewRequest(http.MethodPost, srv.URL, strings.NewReader(exampleBody))
		if err != nil {
			log.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if err := signing.Sign(req.Header, signing.DefaultSchemes(), "evt_1", time.Now(), []byte(exampleBody), keys); err != nil {
			log.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			log.Fatal(err)
		}
		answer, _ := io.ReadAll(res.Body)
		res.Body.Close()
		fmt.Println(res.StatusCode, string(answer))
	}
	var name string
	if err := pool.QueryRow(ctx, "SELECT name FROM surehook_example.customers WHERE id = 'cus_7'").Scan(&name); err != nil {
		log.Fatal(err)
	}
	fmt.Println(name)
	// Output:
	// 200 {"result":"applied"}
	// 200 {"result":"duplicate"}
	// Ada
}
