package scenario_test

import (
	"os"
	"testing"

	"github.com/surehook/surehook/internal/pgtest"
)

func TestMain(m *testing.M) {
	pgtest.TempInMemory()
	os.Exit(m.Run())
}
