package dedup_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/dedup/sqlite"
)

func ExampleStore() {
	ctx := context.Background()
	store := memory.New()
	plan := "none" // the rows that the events change

	receive := func(id string, version int64, newPlan string) {
		outcome := "applied"
		err := store.InTx(ctx, func(tx *memory.Tx) error {
			fresh, err := store.Mark(ctx, tx, "billing", id, time.Now())
			if err != nil {
				return err
			}
			if !fresh {
				outcome = "duplicate"
				return nil
			}
			newer, err := store.Advance(ctx, tx, "billing", dedup.Object{Type: "subscriber", ID: "7"}, version)
			if err != nil {
				return err
			}
			if !newer {
				outcome = "stale"
				return nil // the marker is committed all the same
			}
			plan = newPlan
			return nil
		})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(id, outcome, plan)
	}
	receive("evt_1", 1, "silver")
	receive("evt_3", 3, "gold")
	receive("evt_2", 2, "bronze")
	receive("evt_3", 3, "gold")
	// Output:
	// evt_1 applied silver
	// evt_3 applied gold
	// evt_2 stale gold
	// evt_3 duplicate gold
}

func ExampleCheckRetention() {
	fmt.Println(dedup.CheckRetention(dedup.DefaultRetention, dedup.DefaultReach, dedup.DefaultHorizon))
	fmt.Println(dedup.CheckRetention(24*time.Hour, 72*time.Hour, time.Hour))
	// Output:
	// <nil>
	// dedup: invalid argument: a retention of 24h0m0s is too short for a reach of 72h0m0s and a horizon of 1h0m0s: it must be at least 97h0m0s (the reach, the horizon and a margin of 24h0m0s), or a late duplicate is applied again
}

func ExamplePrune() {
	ctx := context.Background()
	store := memory.New()
	now := time.Date(2026, 3, 31, 0, 0, 0, 0, time.UTC)
	err := store.InTx(ctx, func(tx *memory.Tx) error {
		for day := range 90 { // one event a day since January
			id := fmt.Sprintf("evt_%d", day)
			if _, err := store.Mark(ctx, tx, "billing", id, now.AddDate(0, 0, -day)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}

	removed, err := dedup.Prune(ctx, store.InTx, store, now.Add(-dedup.DefaultRetention), 0)
	fmt.Println(removed, err)
	// Output: 57 <nil>
}

// bunTx stands for the transaction type of a library that wraps *sql.Tx.
type bunTx struct{ *sql.Tx }

func ExampleAdapt() {
	store := dedup.Adapt(sqlite.New(), func(tx bunTx) *sql.Tx { return tx.Tx })

	_, err := store.Mark(context.Background(), bunTx{}, "billing", "evt.1", time.Now())
	fmt.Println(errors.Is(err, dedup.ErrInvalid), err)
	// Output: true dedup: invalid argument: event id has the character '.' at offset 3: allowed are ASCII letters, digits, hyphens and underscores
}
