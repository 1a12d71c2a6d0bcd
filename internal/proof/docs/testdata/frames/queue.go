package block

import (
	"context"
	"net/http"
	"os"

	"github.com/surehook/surehook"
	"github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/receiver"
)

var put func(ctx context.Context, scope, id, eventType string, body []byte) error

func block() error {
	// BLOCK
	return nil
}
