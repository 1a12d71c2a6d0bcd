package block

import (
	"testing"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/surehook/surehook"
	"github.com/surehook/surehook/dedup/postgres"
	"github.com/surehook/surehook/sender/postgres/postgrestest"
	"github.com/surehook/surehook/signing"
)

var (
	t      *testing.T
	secret signing.Secret
)

func block() error {
	// BLOCK
	return nil
}
