package catchup_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"

	dedup "github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/catchup"
	"github.com/surehook/surehook/receiver/catchup/sqlite"
	"github.com/surehook/surehook/signing"
)

func ExampleCatchup_Reconcile() {
	ctx := context.Background()
	sender := httptest.NewTLSServer(answer(200, "application/json",
		`{"data":[],"next_cursor":"c1"}`))
	defer sender.Close()
	dir, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(dir)
	db, _ := sql.Open("sqlite", "file:"+filepath.Join(dir, "app.db"))
	defer db.Close()
	_ = dedup.Migrate(ctx, db)
	_ = sqlite.Migrate(ctx, db)

	// The receiver is the same as for posted events:
	keys, _ := signing.NewKeyring(signing.Key{ID: "1", Secret: signing.GenerateSecret()})
	verifier, _ := signing.NewVerifier(keys, nil)
	rcv, _ := receiver.New(verifier, receiver.SQL(db, nil), dedup.New(), "billing", nil)
	work := receiver.State(func(context.Context, *sql.Tx, receiver.Event) error { return nil })

	client, _ := catchup.NewClient(sender.URL+"/events", &catchup.ClientConfig{
		Token: catchup.Token("token"), Transport: sender.Client().Transport,
	})
	catching, err := catchup.New(client, rcv, receiver.SQL(db, nil), sqlite.New(), work, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := catching.Reconcile(ctx, "")
	fmt.Println(report.Seen, "seen,", report.Applied, "missed,", report.Next, err)
	// Output: 0 seen, 0 missed, c1 <nil>
}
