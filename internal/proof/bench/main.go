// Command bench measures the speed of the library, and of the programs with which it is
// compared. It measures them in turns, in one run, between processes on one machine.
//
//	go run ./internal/proof/bench                        every scenario, five rounds
//	go run ./internal/proof/bench -quick                 every scenario, small and short
//	go run ./internal/proof/bench -list                  what there is
//	go run ./internal/proof/bench -scenario path,many    those whose names begin so
//
// It starts senders and receivers as processes of their own, and a throw-away
// PostgreSQL server with its defaults for durability. Compare ratios: absolute figures
// depend on the machine.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

type options struct {
	only     string
	rounds   int
	quick    bool
	jsonFile string
	profile  string
}

func main() {
	var o options
	list := flag.Bool("list", false, "list the scenarios")
	role := flag.String("role", "", "internal: what a child process is to do")
	flag.StringVar(&o.only, "scenario", "", "run only the scenarios whose names begin with one of these, separated by commas")
	flag.IntVar(&o.rounds, "rounds", 0, "how often each variant is measured; the medians are shown (default 5, with -quick 1)")
	flag.BoolVar(&o.quick, "quick", false, "small and short: shows that it runs, and little more")
	flag.StringVar(&o.jsonFile, "json", "", "write all that was measured to this file, as JSON")
	flag.StringVar(&o.profile, "profile", "", "write profiles of the dispatchers, of CPU and of allocations, into this folder")
	flag.Parse()
	var err error
	switch {
	case *role != "":
		err = play(*role)
	case *list:
		for _, s := range scenarios() {
			note := ""
			if s.ifNamed {
				note = " (Only if it is named.)"
			}
			fmt.Printf("%-20s %s%s\n", s.name, s.question, note)
		}
	default:
		err = runAll(o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// runAll runs the chosen scenarios. If one fails the others run all the same.
func runAll(o options) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	chosen, err := choose(o.only)
	if err != nil {
		return err
	}
	if o.rounds == 0 {
		o.rounds = 5
		if o.quick {
			o.rounds = 1
		}
	}
	b, err := newBench(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	var all []result
	var failed []error
	for _, s := range chosen {
		r, err := run(ctx, b, s, o.rounds)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			fmt.Fprintf(os.Stderr, "%s: %v\n", s.name, err)
			failed = append(failed, fmt.Errorf("%s: %w", s.name, err))
		default:
			all = append(all, r)
		}
	}
	m := b.machine(ctx)
	fmt.Printf("%s, %d cores, %s, %s, %s; medians of %d rounds in turns\n", m.Date, m.Cores, m.CPU, m.Go, m.versions(), o.rounds)
	for i := range all {
		all[i].print(os.Stdout)
	}
	if o.jsonFile != "" {
		failed = append(failed, writeJSON(o.jsonFile, struct {
			Machine   machine  `json:"machine"`
			Quick     bool     `json:"quick"`
			Scenarios []result `json:"scenarios"`
		}{m, o.quick, all}))
	}
	return errors.Join(failed...)
}

// choose returns the scenarios whose names begin with one of only.
func choose(only string) (chosen []scenario, err error) {
	for prefix := range strings.SplitSeq(only, ",") {
		found := false
		for _, s := range scenarios() {
			if s.name == prefix || !s.ifNamed && strings.HasPrefix(s.name, prefix) {
				chosen, found = append(chosen, s), true
			}
		}
		if !found {
			return nil, fmt.Errorf("the name of no scenario begins with %q: see -list", prefix)
		}
	}
	return chosen, nil
}

func writeJSON(file string, v any) error {
	b, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(b, '\n'), 0o644)
}

// play is a child process.
func play(role string) error {
	switch role {
	case "receiver":
		return receive()
	case "poster":
		return postAll()
	case "dispatcher":
		return runDispatcher()
	case "ordinary":
		return ordinarily()
	}
	return fmt.Errorf("there is no role %q", role)
}
