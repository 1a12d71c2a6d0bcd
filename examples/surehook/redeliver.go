package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
)

func redeliverCommand() command {
	return command{
		name: "redeliver", summary: "send a delivery again, now",
		args: "ID …", arguments: [2]int{1, -1},
		about: `Sends deliveries again, with the same event id and the same bytes: a receiver that has
applied the event takes it for a duplicate. One that is not delivered starts its schedule
anew; one that is delivered gets a single attempt.`,
		example: "surehook redeliver dlv_06h0…",
		flags: func(f *flag.FlagSet) func(context.Context, *terminal, []string) error {
			var o target
			var force bool
			o.flags(f)
			f.BoolVar(&force, "force", false, "with -database: also if its event is so old that receivers may have forgotten it, and would apply it twice")
			return func(ctx context.Context, t *terminal, args []string) error {
				b, err := o.open(ctx, t)
				if err != nil {
					return err
				}
				defer b.close()
				failed := false
				for _, id := range args {
					err := b.redeliver(ctx, id, force)
					if err != nil && !isNo(err) {
						return fmt.Errorf("%s is not sent again: %w", id, err)
					}
					failed = failed || err != nil
					held, err2 := "", error(nil)
					if err == nil {
						held, err2 = holds(ctx, b, id)
					}
					if err := errors.Join(err2, redelivered(t, id, held, err)); err != nil {
						return err
					}
				}
				if failed {
					return errSaid
				}
				return nil
			}
		},
	}
}

// holds says why a delivery is held although somebody wants it sent, or nothing.
func holds(ctx context.Context, b backend, id string) (string, error) {
	r, err := b.delivery(ctx, id)
	if err != nil || r.Status != "held" {
		return "", err
	}
	return r.Why, nil
}

func redelivered(t *terminal, id, held string, err error) error {
	if t.json {
		line := map[string]any{"id": id, "redelivered": err == nil}
		if held != "" {
			line["held"] = held
		}
		if err != nil {
			line["error"] = err.Error()
		}
		return t.encode(line)
	}
	if err != nil {
		t.note("%s is not sent again: %v", id, err)
		return nil
	}
	if held != "" {
		t.say("%s is not sent yet. %s", id, held)
		return nil
	}
	t.say("%s is due again: surehook why %s shows what comes of it", id, id)
	return nil
}
