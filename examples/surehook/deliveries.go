package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"
)

func deliveriesCommand() command {
	return command{
		name: "deliveries", summary: "list deliveries, those of the newest events first",
		about:   "Lists deliveries: one event on its way to one subscription each.",
		example: "surehook deliveries -status dead_lettered -type 'invoice.*' -since 24h",
		flags: func(f *flag.FlagSet) func(context.Context, *terminal, []string) error {
			var o target
			var which filter
			var limit int
			var cursor string
			o.flags(f)
			which.flags(f, "pending, awaiting_retry, held, delivered, dead_lettered, cancelled or superseded")
			f.StringVar(&which.event, "event", "", "the `id` of an event")
			f.Var(&which.object, "object", "with -database: the `TYPE/ID` of what the events are about")
			f.IntVar(&limit, "limit", 50, "how many are listed at most")
			f.StringVar(&cursor, "cursor", "", "the `cursor` that the list before has ended with")
			return func(ctx context.Context, t *terminal, _ []string) error {
				if limit < 1 {
					return fmt.Errorf("-limit is %d: it must be 1 or more", limit)
				}
				b, err := o.open(ctx, t)
				if err != nil {
					return err
				}
				defer b.close()
				p, err := gather(ctx, t, b, which, cursor, limit)
				if err != nil {
					return err
				}
				if t.json {
					return t.encode(p)
				}
				printDeliveries(t, p)
				if len(p.Data) == 0 && which.event != "" {
					t.say("surehook why %s says why, if there is such an event", which.event)
				}
				return nil
			}
		},
	}
}

// String implements flag.Value.
func (o *object) String() string {
	if o == nil || *o == (object{}) {
		return ""
	}
	return o.Type + "/" + o.ID
}

// Set implements flag.Value.
func (o *object) Set(text string) error {
	about, id, ok := strings.Cut(text, "/")
	if !ok || about == "" || id == "" {
		return errors.New("it must be like invoice/in_1")
	}
	*o = object{about, id}
	return nil
}

// gather reads pages until it has as many as are asked for. A page can be short before the
// end.
func gather(ctx context.Context, t *terminal, b backend, which filter, cursor string, limit int) (page, error) {
	all := page{Data: []delivery{}}
	for {
		p, err := b.deliveries(ctx, which, cursor, min(200, limit-len(all.Data)))
		if err != nil {
			return all, err
		}
		all.Data, all.NextCursor = append(all.Data, p.Data...), p.NextCursor
		if p.NextCursor == nil || len(all.Data) >= limit {
			t.unfinished()
			return all, nil
		}
		t.progress("looking: %d found", len(all.Data))
		cursor = *p.NextCursor
	}
}

func printDeliveries(t *terminal, p page) {
	if len(p.Data) == 0 {
		t.say("there are none")
		return
	}
	rows := [][]string{{"PUBLISHED (UTC)", "STATUS", "EVENT", "OBJECT", "ATTEMPTS", "FAILED BY", "TO", "ID"}}
	for _, d := range p.Data {
		rows = append(rows, []string{
			clock(d.Event.CreatedAt), d.Status, d.Event.Type, d.Event.Object.Type + "/" + d.Event.Object.ID,
			strconv.Itoa(d.AttemptCount), dash(d.LastErrorClass), d.URL, d.ID,
		})
	}
	t.table(rows)
	if p.NextCursor != nil {
		t.say("there may be more: -cursor %s", *p.NextCursor)
	}
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
