package memory_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/memory"
)

func ExampleNew() {
	ctx := context.Background()
	store, err := memory.New(nil)
	if err != nil {
		panic(err)
	}
	pub, err := sender.NewPublisher(store, nil)
	if err != nil {
		panic(err)
	}
	event := sender.Event{Type: "invoice.paid", Object: sender.Object{Type: "invoice", ID: "42"}}

	var ref sender.Ref
	err = pub.InTx(ctx, func(tx *memory.Tx) error {
		_, err := pub.PublishTx(ctx, tx, event)
		return errors.Join(err, errors.New("the payment failed"))
	})
	fmt.Println("rolled back:", err)

	err = pub.InTx(ctx, func(tx *memory.Tx) (err error) {
		ref, err = pub.PublishTx(ctx, tx, event)
		return err
	})
	fmt.Println("version:", ref.Version, err)
	// Output:
	// rolled back: the payment failed
	// version: 1 <nil>
}

func ExampleStore_Begin() {
	ctx := context.Background()
	store, err := memory.New(nil)
	if err != nil {
		panic(err)
	}
	pub, err := sender.NewPublisher(store, nil)
	if err != nil {
		panic(err)
	}
	tx, err := store.Begin(ctx)
	if err != nil {
		panic(err)
	}
	ref, err := pub.PublishTx(ctx, tx, sender.Event{Type: "invoice.paid", Object: sender.Object{Type: "invoice", ID: "42"}})
	fmt.Println("version:", ref.Version, err)
	fmt.Println("committed:", tx.Commit() == nil)
	// Output:
	// version: 1 <nil>
	// committed: true
}
