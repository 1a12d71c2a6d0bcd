package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/surehook/surehook/internal/proof/soak"
)

// soaks soaks each store, for half of the time.
func soaks(o options) func(ctx context.Context, b *bench, during time.Duration, r *result) error {
	return func(ctx context.Context, b *bench, during time.Duration, r *result) error {
		for _, store := range stores {
			// The warm-up is a tenth, and the ends of the two cycles take some seconds.
			cfg := soak.Config{Store: store, Time: during / time.Duration(len(stores)) * 8 / 10, Seed: o.seed, Rate: o.rate, Progress: b.progress}
			report, err := soakOnce(ctx, b, cfg)
			if report != nil {
				r.Details = append(r.Details, report)
				r.soaked(report)
			}
			if err != nil {
				r.fail(fmt.Sprintf("%s, seed %d: %v", store, cfg.Seed, err), "")
			}
		}
		return nil
	}
}

func soakOnce(ctx context.Context, b *bench, cfg soak.Config) (_ *soak.Report, err error) {
	if cfg.Store == soak.SQLite {
		if cfg.Dir, err = os.MkdirTemp("", "proof-"); err != nil {
			return nil, err
		}
		defer os.RemoveAll(cfg.Dir)
	} else if cfg.DSN, err = b.postgres(); err != nil {
		return nil, err
	}
	return soak.Run(ctx, cfg)
}

func (r *result) soaked(s *soak.Report) {
	store := s.Store + ": "
	r.figure(store+"load with faults", s.Load.Round(time.Second).String())
	for _, name := range []string{
		"events acknowledged", "posts", "events applied", "duplicates at receivers", "results that came too late",
		"restarts of dispatchers", "deliveries checked", "events pruned", "events read from the feed",
	} {
		r.figure(store+name, s.Figures[name])
	}
	faults := int64(0)
	for name, n := range s.Figures {
		if len(name) > 7 && name[:7] == "faults:" {
			faults += n
		}
	}
	r.figure(store+"faults", faults)
	most := slices.MaxFunc(append([]soak.Sample{s.Start}, s.Samples...), func(a, b soak.Sample) int { return int(a.Heap) - int(b.Heap) })
	for _, f := range []struct {
		name string
		of   func(s soak.Sample) any
	}{
		{"live heap, KB", func(s soak.Sample) any { return s.Heap >> 10 }},
		{"resident, MB", func(s soak.Sample) any { return s.Resident >> 20 }},
		{"goroutines", func(s soak.Sample) any { return s.Goroutines }},
		{"descriptors", func(s soak.Sample) any { return s.Descriptors }},
		{"rows", func(s soak.Sample) any { return s.AllRows() }},
	} {
		r.figure(store+f.name+": start / at the highest heap / end", fmt.Sprintf("%v / %v / %v", f.of(s.Start), f.of(most), f.of(s.End)))
	}
	r.figure(store+"from the end of the faults until all was delivered", s.Drain.Round(time.Millisecond).String())
	for _, f := range s.Findings {
		r.fail(store+f.String(), fmt.Sprintf("go run ./internal/proof -parts soak -time %v -seed %d", s.Load*time.Duration(len(stores))*10/8, s.Seed))
	}
}
