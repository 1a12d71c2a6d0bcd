package crash

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/http"

	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/signing"
)

// receiving is the point of a receiver that is not killed.
const receiving = "receiving"

// receive applies events until it is killed. It tells its parent the address on which
// it listens.
func (o *order) receive(ctx context.Context) error {
	p, err := o.Place.open(ctx, &trap{point: o.Point, hit: o.Hit})
	if err != nil {
		return err
	}
	keyring, err := ringOf()
	if err != nil {
		return err
	}
	verifier, err := signing.NewVerifier(keyring, nil)
	if err != nil {
		return err
	}
	rcv, err := receiver.New(verifier, receiver.SQL(p.db, nil), p.dedup, "default", &receiver.Config{Logger: quiet})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it waits for nothing
	if err != nil {
		return err
	}
	tell(toldURL, "http://"+listener.Addr().String())
	return http.Serve(listener, rcv.Handler(receiver.State(func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error { //nolint:gosec // it lives for a second
		_, err := tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO effects VALUES ('%s', '%s', %d)", ev.ID, ev.Object.ID, ev.Version))
		return err
	})))
}

// ringOf returns the secret with which events for a receiver are signed.
func ringOf() (*signing.Keyring, error) {
	secret, err := signing.ParseSecret("whsec_" + "Y3Jhc2hjcmFzaGNyYXNoY3Jhc2hjcmFzaGNyYXNoMTI=")
	if err != nil {
		return nil, err
	}
	return signing.NewKeyring(signing.Key{ID: "1", Secret: secret})
}
