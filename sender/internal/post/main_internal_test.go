package post

import (
	"os"
	"testing"

	"github.com/surehook/surehook/internal/waittest"
)

func TestMain(m *testing.M) { os.Exit(waittest.Run(m, 4)) }
