// Command proof runs the tests that inject faults at length, and writes a report.
//
//	go run ./internal/proof                              an hour, all parts
//	go run ./internal/proof -time 5m -parts soak         one part, shorter
//	go run ./internal/proof -kills 50 -parts crashes     50 kills, however long they take
//	go run ./internal/proof -seed 7 -out /tmp/proof      what is drawn is drawn from the seed
//	go run ./internal/proof -page TESTING.md             the figures also into that page
//
// The parts run one after the other. The kills and the defects come first, all of them,
// however long they take. The soak and the simulation share the remaining time, and get at
// least half of the whole. If the other parts were slow, the run takes longer than its
// time. If a part fails the others run all the same, and the exit code is 1. The report is
// proof.json and proof.md. PostgreSQL is a throw-away server from installed binaries.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/surehook/surehook/internal/proof/crash"
)

type options struct {
	time          time.Duration
	parts         string
	out, page     string
	seed          uint64
	kills         int
	databaseKills int
	parallel      int
	rate          float64
}

func main() {
	crash.Child() // the crashes' processes are this program, started again
	var o options
	flag.DurationVar(&o.time, "time", time.Hour, "how long it takes, unless kills and defects take more than half of it")
	flag.StringVar(&o.parts, "parts", "", "run only these, separated by commas: "+names(all(o)))
	flag.StringVar(&o.out, "out", "proof", "write proof.json and proof.md into this folder")
	flag.StringVar(&o.page, "page", "", "also put the figures into this page, between its marks")
	flag.Uint64Var(&o.seed, "seed", 0, "what everything is drawn from (default: drawn, too, and told)")
	flag.IntVar(&o.kills, "kills", 700, "crashes: how many processes per store are killed")
	flag.IntVar(&o.databaseKills, "database-kills", 200, "database: how often it is killed")
	flag.IntVar(&o.parallel, "parallel", 2, "defects: try so many side by side")
	flag.Float64Var(&o.rate, "rate", 25, "soak: publish so many events a second")
	flag.Parse()
	if o.seed == 0 {
		o.seed = rand.Uint64()
	}
	err := proof(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "proof:", err)
		os.Exit(1)
	}
}

var errFailed = errors.New("something failed: see the report")

func proof(o options) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	chosen, err := choose(all(o), o.parts)
	if err != nil {
		return err
	}
	b := &bench{options: o, progress: func(line string) { fmt.Fprintln(os.Stderr, time.Now().Format(time.TimeOnly), line) }}
	defer b.close()
	report := newReport(ctx, o)
	b.progress(fmt.Sprintf("%v, seed %d", o.time, o.seed))
	for i, p := range chosen {
		if ctx.Err() != nil {
			break
		}
		during := share(chosen[i:], time.Until(report.began.Add(o.time)), o.time)
		if during > 0 {
			b.progress(fmt.Sprintf("%s, for %v", p.name, during.Round(time.Second)))
		} else {
			b.progress(p.name + ", until all is done")
		}
		report.add(p.play(ctx, b, during))
		if err := report.write(o.out); err != nil { // after each part, in case the run is broken off
			return err
		}
	}
	report.finish(ctx, b)
	if err := report.write(o.out); err != nil {
		return err
	}
	if o.page != "" {
		if err := report.into(o.page); err != nil {
			return err
		}
	}
	fmt.Print(report.table())
	if report.Failed || ctx.Err() != nil {
		return errFailed
	}
	return nil
}
