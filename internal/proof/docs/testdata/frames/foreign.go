package block

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"os"

	"github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/httpsig"
	"github.com/surehook/surehook/signing/paypal"
	"github.com/surehook/surehook/signing/vendors"
)

var (
	db    *sql.DB
	inTx  = receiver.SQL(db, nil)
	store = sqlite.New()
	keys  *signing.Keyring

	verifier *signing.Verifier
	work     receiver.Work[*sql.Tx]
)

func lookUp(ctx context.Context, name string) (secret signing.Secret, tenant string, err error) {
	panic("left out")
}

func block() error {
	// BLOCK
	return nil
}
