package sendertest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/surehook/surehook/sender"
)

// Outbox stands between a Publisher and a store, and remembers the published events,
// for tests of code that publishes:
//
//	outbox := sendertest.NewOutbox(store)
//	pub, err := sender.NewPublisher(outbox, nil)
//	// … run the code under test with pub …
//	ev := sendertest.RequirePublished(t, outbox, "customer.renamed", sender.Object{Type: "customer", ID: "7"})
//
// An event counts once its transaction has committed. The outbox sees the end of a
// transaction that InTx of the publisher or of the outbox began. For the events of any
// other transaction it asks the store whether they are there, by the method Event that
// every store of this module has. If the store has none, or cannot say within ten seconds,
// its last answer holds, and without one they count.
//
// Outbox is safe for concurrent use. Transactions must be comparable, as pointers are.
type Outbox[Tx any] struct {
	sender.Outbox[Tx]

	mu        sync.Mutex
	open      map[any][]Published // by transaction of InTx
	published []*entry
}

// entry is an event that may count.
type entry struct {
	Published
	committed bool // for certain
	missing   bool // when the store was asked last
}

// asking bounds the questions about what is committed: a store with a single writer may have
// one that ends no sooner than the test.
const asking = 10 * time.Second

// Published is an event as it was published.
type Published struct {
	sender.Draft
	Version int64           // as assigned or given
	Body    []byte          // as it is sent
	Data    json.RawMessage // the producer's, nil if there is none
}

// NewOutbox returns an Outbox on a store.
func NewOutbox[Tx any](store sender.Outbox[Tx]) *Outbox[Tx] {
	return &Outbox[Tx]{Outbox: store, open: map[any][]Published{}}
}

// PublishTx publishes to the store. Duplicates of an idempotency key, and events that were
// dropped, do not count.
func (o *Outbox[Tx]) PublishTx(ctx context.Context, tx Tx, drafts []sender.Draft) ([]sender.Ref, error) {
	refs, err := o.Outbox.PublishTx(ctx, tx, drafts)
	if err != nil {
		return refs, err
	}
	var fresh []Published
	for i, ref := range refs {
		if ref.Duplicate || ref.Dropped {
			continue
		}
		p := Published{Draft: drafts[i], Version: ref.Version, Body: drafts[i].Body(ref.Version)}
		var body struct{ Data json.RawMessage }
		if err := json.Unmarshal(p.Body, &body); err == nil {
			p.Data = body.Data
		}
		fresh = append(fresh, p)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if held, ok := o.open[tx]; ok {
		o.open[tx] = append(held, fresh...)
	} else {
		o.add(fresh, false)
	}
	return refs, nil
}

// InTx runs fn in a transaction of the store.
func (o *Outbox[Tx]) InTx(ctx context.Context, fn func(Tx) error) error {
	var last any
	committed := false
	defer func() { // also if fn panics or ends its goroutine
		o.mu.Lock()
		defer o.mu.Unlock()
		if committed {
			o.add(o.open[last], true)
		}
		delete(o.open, last)
	}()
	err := o.Outbox.InTx(ctx, func(tx Tx) error {
		o.mu.Lock()
		delete(o.open, last) // of a run that is repeated
		last = tx
		o.open[tx] = []Published{}
		o.mu.Unlock()
		return fn(tx)
	})
	committed = err == nil
	return err
}

func (o *Outbox[Tx]) add(all []Published, committed bool) {
	for _, p := range all {
		o.published = append(o.published, &entry{Published: p, committed: committed})
	}
}

// Published returns what was published so far and is committed, in the order in which it was
// published.
func (o *Outbox[Tx]) Published() []Published {
	o.mu.Lock()
	all := slices.Clone(o.published)
	o.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), asking)
	defer cancel()
	var out []Published
	for _, e := range all {
		if o.counts(ctx, e) {
			out = append(out, e.Published)
		}
	}
	return out
}

// counts asks the store while others may publish: their transaction may be what it waits for.
func (o *Outbox[Tx]) counts(ctx context.Context, e *entry) bool {
	o.mu.Lock()
	committed := e.committed
	o.mu.Unlock()
	store, tells := o.Outbox.(interface {
		Event(ctx context.Context, id string) (sender.StoredEvent, error)
	})
	if committed || !tells {
		return true
	}
	_, err := store.Event(ctx, e.ID)
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case err == nil: // it stays so, also once the event is pruned
		e.committed, e.missing = true, false
	case errors.Is(err, sender.ErrNotFound):
		e.missing = true
	}
	return !e.missing
}

// RequirePublished ends the test unless exactly one event of that type about
// that object was published and is committed, and returns it.
func RequirePublished[Tx any](t testing.TB, o *Outbox[Tx], eventType string, object sender.Object) Published {
	t.Helper()
	var found []Published
	all := o.Published()
	for _, p := range all {
		if p.Type == eventType && p.Object == object {
			found = append(found, p)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d events of type %q about %s %q were published, not one; published were:%s", len(found), eventType, object.Type, object.ID, list(all))
		return Published{}
	}
	return found[0]
}

// RequireNothingPublished ends the test if an event was published and is committed.
func RequireNothingPublished[Tx any](t testing.TB, o *Outbox[Tx]) {
	t.Helper()
	if all := o.Published(); len(all) > 0 {
		t.Fatalf("nothing was to be published; published were:%s", list(all))
	}
}

func list(all []Published) string {
	if len(all) == 0 {
		return " none"
	}
	var b strings.Builder
	for _, p := range all {
		b.WriteString("\n\t" + p.Type + " about " + p.Object.Type + " " + p.Object.ID)
	}
	return b.String()
}
