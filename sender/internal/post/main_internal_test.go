package post

import (
	"os"
	"testing"

	"github.com/surehook/surehook/internal/overlap"
)

func TestMain(m *testing.M) {
	overlap.Tests(4)
	os.Exit(m.Run())
}
