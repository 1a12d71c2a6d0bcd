package dispatch_test

import (
	"os"
	"testing"

	"github.com/surehook/surehook/internal/overlap"
)

func TestMain(m *testing.M) {
	overlap.Tests(8)
	os.Exit(m.Run())
}
