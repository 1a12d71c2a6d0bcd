package receivertest_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/signing"
)

// exampleT stands in for the *testing.T that a test has.
type exampleT struct{ testing.TB }

func (exampleT) Helper()                  {}
func (exampleT) Context() context.Context { return context.Background() }
func (exampleT) Fatal(args ...any)        { panic(fmt.Sprint(args...)) }

// This is a test of your own handler. The handler must bear everything that at-least-once
// delivery may do.
func Example() {
	t := exampleT{}
	secret := signing.GenerateSecret()
	keys, err := signing.NewKeyring(signing.Key{Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := signing.NewVerifier(keys, nil)
	if err != nil {
		t.Fatal(err)
	}
	store := memory.New()
	rcv, err := receiver.New(verifier, store.InTx, store, "default", &receiver.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	var newest int64
	handler := rcv.Handler(receiver.State(func(_ context.Context, _ *memory.Tx, ev receiver.Event) error {
		if ev.Version <= newest {
			t.Fatal("an older event came after a newer one")
		}
		newest = ev.Version
		return nil
	}))

	snd := receivertest.NewSender(t, secret, nil)
	one := receivertest.NewEvent("subscriber", "sub_1", 1)
	two := receivertest.NewEvent("subscriber", "sub_1", 2)
	for _, ev := range receivertest.Shuffled(1, 3, one, two) {
		if a := snd.Request(ev).Serve(handler); a.Status != 200 {
			t.Fatal(a.Status)
		}
	}
	fmt.Println("newest:", newest)
	fmt.Println("again:", snd.Request(one).Serve(handler).Result)
	fmt.Println("tampered:", snd.Request(one).Tampered().Serve(handler).Status)
	fmt.Println("an hour old:", snd.Request(one).Skewed(-time.Hour).Serve(handler).Status)
	// Output:
	// newest: 2
	// again: duplicate
	// tampered: 401
	// an hour old: 401
}
