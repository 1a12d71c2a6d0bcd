package memory_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surehook/surehook/dedup/memory"
)

func ExampleStore_InTx() {
	ctx, store := context.Background(), memory.New()
	for _, applied := range []error{errors.New("apply failed"), nil, nil} {
		err := store.InTx(ctx, func(tx *memory.Tx) error {
			fresh, err := store.Mark(ctx, tx, "billing", "evt_1", time.Now())
			if err != nil {
				return err
			}
			fmt.Println("fresh:", fresh)
			return applied
		})
		fmt.Println(err)
	}
	// Output:
	// fresh: true
	// apply failed
	// fresh: true
	// <nil>
	// fresh: false
	// <nil>
}
