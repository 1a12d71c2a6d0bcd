package receiver_test

import (
	"os"
	"testing"

	"github.com/surehook/surehook/internal/overlap"
	"github.com/surehook/surehook/internal/pgtest"
)

func TestMain(m *testing.M) {
	pgtest.TempInMemory()
	overlap.Tests(4)
	os.Exit(m.Run())
}
