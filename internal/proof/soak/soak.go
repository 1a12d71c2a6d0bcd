package soak

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/surehook/surehook/sender"
)

// Run soaks as the config says, and reports its findings. If it could not finish, it
// returns an error, which is a finding, too. It measures the whole process, so nothing else
// may run in it meanwhile.
func Run(ctx context.Context, cfg Config) (_ *Report, err error) {
	full, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	f, n := &findings{kinds: map[string]*Finding{}}, &figures{n: map[string]int64{}}
	w := newWitness(f, n)
	report := &Report{Store: full.Store, Seed: full.Seed, Load: full.Time}
	began := time.Now()
	p, err := newPlace(ctx, full)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.drop(context.WithoutCancel(ctx))) }()
	keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{7}, 32)})
	if err != nil {
		return nil, err
	}
	c := cycle{
		cfg: full, place: p, w: w, keys: keys, feed: &reader{versions: map[sender.Object]int64{}},
		log: slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	var ends [2]Sample
	for number, load := range []time.Duration{full.WarmUp, full.Time} {
		full.Progress(fmt.Sprintf("%s: load %d of 2, for %v, seed %d", full.Store, number+1, load, full.Seed))
		this := c.next(number, load)
		if err = this.run(ctx); err != nil {
			f.add("run", "cycle %d did not come to its end: %v", number+1, err)
			break
		}
		if ends[number], err = left(ctx, p); err != nil {
			f.add("run", "cycle %d could not be measured: %v", number+1, err)
			break
		}
		ends[number].At = load
		report.Samples, report.Drain = this.samples, this.drained
	}
	if err == nil {
		f.grown(ends[0], ends[1])
		w.stayed(&ends[1])
		if !f.rising(report.Samples, full.Reach) && full.Time >= 2*time.Minute {
			f.add("run", "%d samples are too few to tell what grew under load", len(report.Samples))
		}
	}
	if all := n.all(); all["events pruned before they were checked"] > all["events acknowledged"]/50 {
		f.add("run", "%d of %d events were pruned before they were checked: give it more time, or a longer reach",
			all["events pruned before they were checked"], all["events acknowledged"])
	}
	report.Start, report.End, report.Findings, report.Figures = ends[0], ends[1], f.all(), n.all()
	report.Took = time.Since(began)
	return report, err
}

// next is a cycle that goes on where the one before has ended.
func (c *cycle) next(number int, load time.Duration) *cycle {
	return &cycle{
		cfg: c.cfg, place: c.place, w: c.w, log: c.log, keys: c.keys, feed: c.feed,
		number: number, load: load, loaded: make(chan struct{}), calmed: make(chan struct{}),
	}
}

// left returns the resources that remain when everything is stopped and closed.
func left(ctx context.Context, p *place) (Sample, error) {
	http.DefaultClient.CloseIdleConnections()
	s, err := p.leftRows(ctx)
	if err != nil {
		return s, err
	}
	settle(&s)
	return s, nil
}

func (p *place) leftRows(ctx context.Context) (Sample, error) {
	sends, err := p.openSending(ctx)
	if err != nil {
		return Sample{}, err
	}
	defer sends.close()
	applies, err := p.openApplying(ctx)
	if err != nil {
		return Sample{}, err
	}
	defer applies.close()
	return sample(ctx, 0, sends.base, applies.base)
}
