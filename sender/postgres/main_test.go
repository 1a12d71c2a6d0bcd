package postgres_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/surehook/surehook/internal/overlap"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/takeovertest"
	"github.com/surehook/surehook/sender/postgres"
)

// TestMain lets tests run this program as the processes that are killed, or stopped.
func TestMain(m *testing.M) {
	takeovertest.Child(openChild)
	if dsn := os.Getenv(suspendedDSN); dsn != "" {
		if err := dispatchUntilToldTo(dsn, os.Getenv(suspendedSchema)); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	if err := pgtest.Missing(); err != nil {
		fmt.Fprintln(os.Stderr, "NO EXAMPLES on PostgreSQL:", err)
		if err := flag.Set("test.skip", "^Example"); err != nil {
			panic(err)
		}
	}
	overlap.Tests(4)
	code := m.Run()
	shared.drop()
	os.Exit(code)
}

// childPlace is where a process of the tests in package takeover works, as JSON.
type childPlace struct {
	DSN, Schema string
	Pooler      bool
}

func openChild(text string) (dispatch.Store, error) {
	var p childPlace
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return nil, err
	}
	pool, err := pgxpool.New(context.Background(), p.DSN)
	if err != nil {
		return nil, err
	}
	return postgres.New(pool, &postgres.Config{Schema: p.Schema, Pooler: p.Pooler})
}

// accepts answers every POST at once.
type accepts struct{}

func (accepts) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusNoContent, Header: http.Header{}, Body: http.NoBody}, nil
}

func replayKeys() (*sender.Keys, error) {
	return sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{1}, 32)})
}
