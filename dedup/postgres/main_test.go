package postgres_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/surehook/surehook/internal/pgtest"
)

// These tell the child of TestKill its task.
const (
	childDSN    = "SUREHOOK_TEST_KILL_DSN"
	childSchema = "SUREHOOK_TEST_KILL_SCHEMA"
)

func TestMain(m *testing.M) {
	if dsn := os.Getenv(childDSN); dsn != "" {
		fmt.Fprintln(os.Stderr, applyForEver(context.Background(), dsn, os.Getenv(childSchema)))
		os.Exit(1)
	}
	if err := pgtest.Missing(); err != nil {
		fmt.Fprintln(os.Stderr, "NO EXAMPLES on PostgreSQL:", err)
		if err := flag.Set("test.skip", "^Example"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
