package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/surehook/surehook/internal/proof/bench/child"
	"github.com/surehook/surehook/sender"
)

const (
	unfiltered = "without a filter"
	tenTerms   = "filter of ten terms"
	halfMatch  = "half do not match"
)

// tenOperators holds of the events of filtered, all but the last operator of each other one.
const tenOperators = `{"data.status":"paid","data.amount":{"gte":100,"lt":1000},"data.currency":{"in":["EUR","USD","CHF"]},"data.customer.country":"DE",
	"data.customer.name":{"prefix":"Jo"},"data.items.sku":"sku_3","data.refund":{"exists":false},"or":[{"data.test":true},{"data.region":"eu"}]%s}`

// filtering measures how many deliveries a second an expansion makes for subscriptions with
// a filter.
func filtering[Tx any](k kind[Tx]) scenario {
	return scenario{
		name: "filter-" + k.name,
		question: "Expanding 10,000 events of 1 KiB on " + k.text + ", each for one of 100 subscriptions, that have no filter, or one of ten operators that match; " +
			"and one by which half of the events do not (with -quick 1,000). Events decided a second.",
		columns: []string{eventsDecided, drivers, databaseCPU},
		ratios: []ratio{
			{figure: eventsDecided, of: tenTerms, over: []string{unfiltered}, least: 0.8, aim: 0.95},
			{figure: eventsDecided, of: halfMatch, over: []string{unfiltered}},
		},
		open: func(ctx context.Context, b *bench) ([]measure, func() error, error) {
			p, err := k.fresh(ctx, b)
			if err != nil {
				return nil, nil, err
			}
			p.asDispatcher()
			f := &filtered[Tx]{place: p, n: b.of(10_000, 1000), meter: k.meter(ctx, b)}
			if f.pub, err = sender.NewPublisher(p.store, nil); err != nil {
				return nil, p.close, err
			}
			var all []measure
			for i, v := range []struct{ name, filter string }{
				{unfiltered, ""}, {tenTerms, fmt.Sprintf(tenOperators, "")}, {halfMatch, fmt.Sprintf(tenOperators, `,"data.odd":true`)},
			} {
				r := registering{prefix: fmt.Sprintf("filter%d", i), n: 100, url: nowhere, types: []string{"thing.*"}, filter: v.filter}
				if _, err := p.register(ctx, r); err != nil {
					return nil, p.close, err
				}
				all = append(all, func(ctx context.Context) ([]sample, error) { return f.measured(ctx, v.name, r) })
			}
			return all, p.close, p.settle(ctx)
		},
	}
}

const eventsDecided = "events/s"

// filtered is a database with subscriptions with filters and without.
type filtered[Tx any] struct {
	*place[Tx]
	pub   *sender.Publisher[Tx]
	n     int
	meter meter
}

func (f *filtered[Tx]) measured(ctx context.Context, variant string, r registering) ([]sample, error) {
	for done := 0; done < f.n; {
		events := make([]sender.Event, min(batch, f.n-done))
		for i := range events {
			events[i] = orderEvent(done+i, r.inTurn(done+i))
		}
		if _, err := f.pub.PublishMany(ctx, events); err != nil {
			return nil, err
		}
		done += len(events)
	}
	figures := map[string]float64{}
	var took time.Duration
	var cpu float64
	expand := func() error {
		before, began := child.CPU(), time.Now()
		err := f.expand(ctx)
		took, cpu = time.Since(began), child.CPU()-before
		return err
	}
	perEvent := 1 / float64(f.n)
	if f.meter != nil {
		expand = metered(expand, f.meter, perEvent, figures, databaseCPU)
	}
	if err := expand(); err != nil {
		return nil, err
	}
	figures[eventsDecided], figures[drivers] = float64(f.n)/took.Seconds(), cpu*perEvent
	return one(variant, figures), nil
}

// orderEvent is an event of about 1 KiB with data that filters can look into.
func orderEvent(i int, subscriber string) sender.Event {
	var items strings.Builder
	for n := range 8 {
		fmt.Fprintf(&items, `,{"sku":"sku_%d","quantity":%d,"price":"12.50","text":"a thing of some kind"}`, n, n)
	}
	data := fmt.Sprintf(`{"status":"paid","amount":120.50,"currency":"EUR","customer":{"id":"cus_%d","country":"DE","name":"Jo Public"},"region":"eu","odd":%t,"items":[%s]}`,
		i, i/100%2 == 1, items.String()[1:])
	return sender.Event{Type: "thing.changed", Object: sender.Object{Type: "thing", ID: fmt.Sprintf("thing_%d", i)}, Subscriber: subscriber, Data: json.RawMessage(data)}
}
