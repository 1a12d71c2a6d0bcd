package main

import (
	"context"
	"flag"

	"github.com/surehook/surehook/examples/surehook/verify"
)

func verifyCommand() command {
	return command{
		name: "verify", summary: "name the sender of a captured request, or say why it does not verify",
		args: "[FILE]", arguments: [2]int{0, 1},
		about: `FILE (or standard input) has a request, as raw HTTP or as a curl command. The scheme of
every known sender whose signature header the request has is tried, with each secret.`,
		example: "surehook verify -secret-file secret.txt request.http",
		flags: func(f *flag.FlagSet) func(context.Context, *terminal, []string) error {
			var o verify.Options
			o.Flags(f)
			return func(_ context.Context, t *terminal, args []string) error {
				if err := o.Check(t.env); err != nil {
					return err
				}
				r, err := o.Request(append(args, "")[0], t.in)
				if err != nil {
					return err
				}
				if t.json {
					err = t.encode(r)
				} else {
					r.Print(t.out)
				}
				if err == nil && !r.Verified {
					err = errSaid
				}
				return err
			}
		},
	}
}
