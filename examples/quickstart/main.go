// Command quickstart is a producer and a consumer of events, each with a SQLite
// file of its own, talking over real HTTP. It shows what the library guarantees,
// one thing after the other, and checks at the end that it held.
//
//	go run ./examples/quickstart
//
// producer.go is how a service sends, consumer.go how a service receives; this
// file is the story that runs them.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/catalogue/shop"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	dir, err := os.MkdirTemp("", "quickstart-")
	if err != nil {
		log.Fatal(err)
	}
	err = story(ctx, dir)
	_ = os.RemoveAll(dir)
	if err != nil {
		log.Fatalln("FAILED:", err)
	}
	fmt.Println("\nEverything held.")
}

// story makes both services, and has each chapter show one guarantee.
func story(ctx context.Context, dir string) error {
	p, err := newProducer(ctx, filepath.Join(dir, "producer.db"))
	if err != nil {
		return err
	}
	defer p.close()

	// The consumer registers its URL with the producer and gets a secret.
	c, err := newConsumer(ctx, filepath.Join(dir, "consumer.db"), p.subscribe)
	if err != nil {
		return err
	}
	defer c.close()

	for _, chapter := range []func(context.Context, *producer, *consumer) error{
		commit, rollBack, retry, duplicate, overtaken, deadLetter, hold, rotate, forms, check,
	} {
		if err := chapter(ctx, p, c); err != nil {
			return err
		}
	}
	return nil
}

func commit(ctx context.Context, producer *producer, consumer *consumer) error {
	fmt.Println("1. An event commits with the change it reports.")
	if err := producer.setPlan(ctx, "ada", "pro"); err != nil {
		return err
	}
	return consumer.expect(ctx, "applied")
}

func rollBack(ctx context.Context, producer *producer, _ *consumer) error {
	fmt.Println("2. A change that is rolled back takes its event along: nothing is ever sent.")
	errChangedMind := errors.New("the customer changed their mind")
	err := producer.setPlan(ctx, "ada", "enterprise", errChangedMind)
	if !errors.Is(err, errChangedMind) {
		return fmt.Errorf("the change was to be rolled back: %w", err)
	}
	fmt.Println("   rolled back:", err)
	return nil
}

func retry(ctx context.Context, producer *producer, consumer *consumer) error {
	fmt.Println("3. An endpoint that fails is tried again until it answers 2xx.")
	consumer.failNext(2)
	if err := producer.setPlan(ctx, "grace", "team"); err != nil {
		return err
	}
	return consumer.expect(ctx, "503", "503", "applied")
}

func duplicate(ctx context.Context, producer *producer, consumer *consumer) error {
	fmt.Println("4. An event that arrives twice is acknowledged, and applied once.")
	again, err := producer.newest(ctx, sender.StatusDelivered)
	if err != nil {
		return err
	}
	if err := producer.hooks.History.Redeliver(ctx, again.ID); err != nil {
		return err
	}
	return consumer.expect(ctx, "duplicate")
}

func overtaken(ctx context.Context, producer *producer, consumer *consumer) error {
	fmt.Println("5. An event that a newer one has overtaken is acknowledged, and dropped.")
	consumer.failNext(1)
	if err := producer.setPlan(ctx, "ada", "free"); err != nil {
		return err
	}
	if err := consumer.expect(ctx, "503"); err != nil {
		return err
	}
	if err := producer.setPlan(ctx, "ada", "team"); err != nil { // arrives before the other one is tried again
		return err
	}
	return consumer.expect(ctx, "applied", "stale")
}

func deadLetter(ctx context.Context, producer *producer, consumer *consumer) error {
	fmt.Println("6. What cannot be delivered is kept as a dead letter, and sent again on demand.")
	consumer.failNext(1000)
	if err := producer.setPlan(ctx, "grace", "free"); err != nil {
		return err
	}
	dead, err := producer.newest(ctx, sender.StatusDeadLettered)
	if err != nil {
		return err
	}
	fmt.Printf("   dead-lettered after %d attempts, the last one: %s\n", len(dead.Attempts), dead.Attempts[len(dead.Attempts)-1].Error)
	consumer.failNext(0)
	if err := producer.hooks.History.Redeliver(ctx, dead.ID); err != nil {
		return err
	}
	if err := consumer.expect(ctx, "applied"); err != nil {
		return err
	}
	_, err = producer.newest(ctx, sender.StatusDelivered) // recorded a moment after the answer
	return err
}

func hold(ctx context.Context, producer *producer, consumer *consumer) error {
	fmt.Println("7. While a subscription is paused its deliveries are held. Nothing is lost, and one can ask why.")
	if err := producer.hooks.Registry.Pause(ctx, producer.callback); err != nil {
		return err
	}
	if err := producer.setPlan(ctx, "ada", "pro"); err != nil {
		return err
	}
	held, err := producer.newest(ctx, sender.StatusHeld)
	if err != nil {
		return err
	}
	why, err := producer.hooks.History.Why(ctx, held.ID)
	if err != nil {
		return err
	}
	fmt.Println("   why:", why.Sentence)
	if err := producer.hooks.Registry.Resume(ctx, producer.callback, sender.Resume{}); err != nil { // all that was held
		return err
	}
	return consumer.expect(ctx, "applied")
}

// rotate replaces the consumer's secret among events that go on all the while.
func rotate(ctx context.Context, producer *producer, consumer *consumer) error {
	fmt.Println("8. A secret is replaced while events flow, and none is refused.")
	flow := make(chan error, 1)
	go func() {
		flow <- producer.changePlans(ctx, "lin", "pro", "team", "free", "pro", "team", "free", "pro", "team", "free", "pro")
	}()
	if err := consumer.expect(ctx, "applied", "applied"); err != nil {
		return err
	}
	secret, until, err := producer.hooks.Registry.RotateSecret(ctx, producer.customer, nil)
	if err != nil {
		return err
	}
	fmt.Println("   producer: a new secret; the old one is valid until", until.Format(time.DateTime))
	if err := consumer.expect(ctx, "applied", "applied", "applied"); err != nil { // it has the old one alone
		return err
	}
	if err := consumer.trust(secret); err != nil {
		return err
	}
	fmt.Println("   consumer: has the new secret")
	if err := consumer.expect(ctx, "applied", "applied"); err != nil {
		return err
	}
	if err := producer.hooks.Registry.RetireSecret(ctx, producer.customer); err != nil {
		return err
	}
	fmt.Println("   producer: the old secret has ended")
	if err := consumer.expect(ctx, "applied", "applied", "applied"); err != nil {
		return err
	}
	return <-flow
}

// forms shows the newest event as it was published, and as it was posted.
func forms(ctx context.Context, producer *producer, _ *consumer) error {
	fmt.Println("9. The data has a newer form. The consumer, which was written for the older one, has got that all the time.")
	posted, err := producer.newest(ctx, sender.StatusDelivered)
	if err != nil {
		return err
	}
	published, err := producer.hooks.History.Event(ctx, posted.Event.ID)
	if err != nil {
		return err
	}
	_, newest, _ := sender.SplitBody(published.Body)
	_, first, _ := sender.SplitBody(posted.Body)
	fmt.Printf("   published: version %s, %s\n   posted:    version %s, %s\n", newest.Version, newest.Data, first.Version, first.Data)
	var state struct {
		Name  string
		Price int // in cents; in the newest version an object, with its currency
	}
	if err := json.Unmarshal(first.Data, &state); err != nil {
		return err
	}
	if first.Version != shop.First || state.Name != "pro" || state.Price != 1900 {
		return fmt.Errorf("the consumer got %s in version %q", first.Data, first.Version)
	}
	return nil
}

// check compares where both sides have ended.
func check(ctx context.Context, producer *producer, consumer *consumer) error {
	want := "ada: pro, grace: free, lin: pro"
	for name, plans := range map[string]func(context.Context) (string, error){"producer": producer.plans, "consumer": consumer.plans} {
		got, err := plans(ctx)
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("the %s ended with %q, not %q", name, got, want)
		}
	}
	applied, err := consumer.applied(ctx)
	if err != nil {
		return err
	}
	if applied != 15 {
		return fmt.Errorf("the consumer applied %d events, not 15", applied)
	}
	// The sender records an answer a moment after the consumer gave it.
	delivered, err := producer.settled(ctx)
	if err != nil {
		return err
	}
	if delivered != 16 {
		return fmt.Errorf("%d deliveries ended delivered, not 16: one for each change that committed", delivered)
	}
	return nil
}
