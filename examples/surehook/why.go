package main

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"time"
)

func whyCommand() command {
	return command{
		name: "why", summary: "say why a delivery or an event has not arrived, or when it did",
		args: "ID", arguments: [2]int{1, 1},
		about: `Says in a sentence what a delivery waits for, and shows its attempts. ID is a delivery's, as
surehook deliveries lists them, or an event's: then each of its deliveries is explained, or
why there is none. With -database it can also be an object's, as TYPE/ID: then the newest
events about it are explained so.`,
		example: "surehook why dlv_06h0…",
		flags: func(f *flag.FlagSet) func(context.Context, *terminal, []string) error {
			var o target
			var body, headers bool
			o.flags(f)
			f.BoolVar(&body, "body", false, "show the body that is posted, too")
			f.BoolVar(&headers, "headers", false, "show the headers of each attempt, too, as far as they are kept")
			return func(ctx context.Context, t *terminal, args []string) error {
				b, err := o.open(ctx, t)
				if err != nil {
					return err
				}
				defer b.close()
				if strings.Contains(args[0], "/") { // no other id has one
					return whyObject(ctx, t, b, args[0])
				}
				r, err := b.delivery(ctx, args[0])
				if isNo(err) && !strings.HasPrefix(args[0], "dlv_") {
					return whyEvent(ctx, t, b, args[0])
				}
				if err != nil {
					return err
				}
				if t.json {
					return t.encode(r)
				}
				printRecord(t, &r, body)
				if headers {
					printHeaders(t, &r)
				}
				return nil
			}
		},
	}
}

func printRecord(t *terminal, r *record, body bool) {
	t.say("%s: %s", r.Status, r.Why)
	t.say("")
	t.table([][]string{
		{"event", fmt.Sprintf("%s %s/%s, version %d", r.Event.Type, r.Event.Object.Type, r.Event.Object.ID, r.Event.Version), r.Event.ID},
		{"published", clock(r.Event.CreatedAt) + " UTC"},
		{"to", r.URL, r.SubscriptionID},
		{"of", r.SubscriberID},
	})
	if len(r.Attempts) > 0 {
		t.say("")
		rows := [][]string{{"ATTEMPT", "AT (UTC)", "TOOK", "CAME OF IT"}}
		for _, a := range r.Attempts {
			rows = append(rows, []string{fmt.Sprint(a.Number), clock(a.StartedAt), (time.Duration(a.DurationMS) * time.Millisecond).String(), a.outcome()})
		}
		t.table(rows)
	}
	switch {
	case body && r.Payload == "":
		t.say("\nthe body was removed: see the redactions of the service, and how long it keeps events")
	case body:
		t.say("\n%s", r.Payload)
	}
}

func whyEvent(ctx context.Context, t *terminal, b backend, id string) error {
	r, err := reportEvent(ctx, b, id)
	if err != nil {
		return err
	}
	if t.json {
		return t.encode(r)
	}
	printEvent(t, &r)
	return nil
}

func printHeaders(t *terminal, r *record) {
	for _, a := range r.Attempts {
		if len(a.RequestHeaders)+len(a.ResponseHeaders) == 0 {
			t.say("\nattempt %d: no headers are kept", a.Number)
			continue
		}
		t.say("\nattempt %d", a.Number)
		for _, h := range a.RequestHeaders {
			t.say("  > %s: %s", h.Name, h.Value)
		}
		for _, h := range a.ResponseHeaders {
			t.say("  < %s: %s", h.Name, h.Value)
		}
	}
}

func (a *attempt) outcome() string {
	if a.ErrorClass == "" {
		if a.StatusCode != nil {
			return fmt.Sprintf("delivered: %d", *a.StatusCode)
		}
		return "delivered"
	}
	text := a.ErrorClass
	if a.Error != nil {
		text += ": " + *a.Error
	}
	if a.ResponseSnippet != nil {
		text += fmt.Sprintf(" %q", cut(*a.ResponseSnippet))
	}
	return text
}
