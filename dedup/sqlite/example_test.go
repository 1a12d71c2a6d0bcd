package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/sqlite"
)

// The marker is in the application's own transaction: it is committed with the
// effect, and rolled back with it.
func Example() {
	dir, err := os.MkdirTemp("", "surehook")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "app.db")+
		"?_txlock=immediate&_pragma=journal_mode(wal)&_pragma=busy_timeout(5000)&_pragma=synchronous(full)")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	ctx := context.Background()
	if err := sqlite.Migrate(ctx, db); err != nil {
		log.Fatal(err)
	}
	if _, err := db.ExecContext(ctx, "CREATE TABLE accounts (id TEXT PRIMARY KEY, credit INTEGER); INSERT INTO accounts VALUES ('7', 0)"); err != nil {
		log.Fatal(err)
	}

	store := sqlite.New()
	pay := func(id string, amount int) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		fresh, err := store.Mark(ctx, tx, "payments", id, time.Now())
		if err != nil {
			return err
		}
		if !fresh {
			fmt.Println(id, "is a duplicate")
			return nil
		}
		if _, err := tx.ExecContext(ctx, "UPDATE accounts SET credit = credit + ? WHERE id = '7'", amount); err != nil {
			return err
		}
		if amount < 0 {
			return errors.New("a payment must not be negative") // the marker is rolled back too
		}
		return tx.Commit()
	}
	fmt.Println(pay("evt_1", 100))
	fmt.Println(pay("evt_1", 100))
	fmt.Println(pay("evt_2", -5))
	fmt.Println(pay("evt_2", 20))

	var credit int
	if err := db.QueryRowContext(ctx, "SELECT credit FROM accounts").Scan(&credit); err != nil {
		log.Fatal(err)
	}
	fmt.Println("credit:", credit)
	// Output:
	// <nil>
	// evt_1 is a duplicate
	// <nil>
	// a payment must not be negative
	// <nil>
	// credit: 120
}

// Dead letters are listed, applied by hand, and discarded in the transaction of
// the effect.
func ExampleStore_ListDeadLetters() {
	dir, err := os.MkdirTemp("", "surehook")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "app.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	ctx, store := context.Background(), sqlite.New()
	if err := sqlite.Migrate(ctx, db); err != nil {
		log.Fatal(err)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer tx.Rollback()

	if err := store.SetAside(ctx, tx, dedup.DeadLetter{
		Scope: "billing", ID: "evt_1", Type: "subscriber.updated",
		Object: dedup.Object{Type: "subscriber", ID: "7"}, Version: 4,
		Body: []byte(`{"id":"evt_1"}`), Reason: "there is no plan named gold", At: time.Now(),
	}); err != nil {
		log.Fatal(err)
	}

	letters, err := store.ListDeadLetters(ctx, tx, "billing", "", 100)
	if err != nil {
		log.Fatal(err)
	}
	for _, l := range letters {
		fmt.Println(l.ID, l.Reason)
		newer, err := store.Advance(ctx, tx, l.Scope, l.Object, l.Version)
		if err != nil {
			log.Fatal(err)
		}
		if newer {
			fmt.Println("applied by hand")
		}
		if err := store.Discard(ctx, tx, l.Scope, l.ID); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(tx.Commit())
	// Output:
	// evt_1 there is no plan named gold
	// applied by hand
	// <nil>
}
