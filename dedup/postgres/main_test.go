package postgres_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/surehook/surehook/internal/overlap"
	"github.com/surehook/surehook/internal/pgtest"
)

func TestMain(m *testing.M) {
	if err := pgtest.Missing(); err != nil {
		fmt.Fprintln(os.Stderr, "NO EXAMPLES on PostgreSQL:", err)
		if err := flag.Set("test.skip", "^Example"); err != nil {
			panic(err)
		}
	}
	overlap.Tests(4)
	os.Exit(m.Run())
}
