package main

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/surehook/surehook/internal/proof/bench/child"
)

const (
	deliveries  = "deliveries/s"
	senderCPU   = "sender CPU µs"
	databaseCPU = "database CPU µs"
	receiverCPU = "receiver CPU µs"
	perCPU      = "deliveries per CPU second" // of all processes: it depends less on the machine's other work

	bareBoth = "bare POSTs"
	bareOne  = "bare POSTs, one signature"
)

// connections is the number of connections for bare POSTs: more connections make no
// more POSTs.
const connections = 128

func pathOnSQLite() scenario { return path(onSQLite, 0.6, 0.85) }

// pathOnPostgres compares with River, with two numbers of workers. The better one
// counts.
func pathOnPostgres() scenario {
	s := path(onPostgres, 0.45, 0.8)
	peers := map[string]int{"River, 128 workers": 128, "River, 1,000 workers": 1000}
	names := slices.Sorted(maps.Keys(peers))
	s.ratios = append(s.ratios, ratio{figure: deliveries, of: s.ratios[0].of, over: names, least: 2, aim: 3},
		ratio{figure: perCPU, of: s.ratios[0].of, over: names})
	open := s.open
	s.open = func(ctx context.Context, b *bench) ([]measure, func() error, error) {
		measures, closeAll, err := open(ctx, b)
		if err != nil {
			return nil, closeAll, err
		}
		r, err := b.startReceiver(ctx, receiverParams{})
		if err != nil {
			return nil, closeAll, err
		}
		for _, name := range names {
			measures = append(measures, func(ctx context.Context) ([]sample, error) { return b.riverJobs(ctx, r, name, peers[name]) })
		}
		return measures, func() error { return errors.Join(closeAll(), r.Stop()) }, nil
	}
	return s
}

// path is the whole path: a backlog of events is expanded, claimed, signed, posted
// to another process, verified there, and recorded.
func path[Tx any](k kind[Tx], least, aim float64) scenario {
	name := "Surehook on " + k.text
	return scenario{
		name:     "path-" + k.name,
		question: "Events delivered from a backlog, the whole path, beside bare POSTs of the same bytes between the same processes.",
		columns:  []string{deliveries, senderCPU, databaseCPU, receiverCPU, perCPU},
		ratios: []ratio{
			{figure: deliveries, of: name, over: []string{bareBoth}, least: least, aim: aim},
			{figure: deliveries, of: name, over: []string{bareOne}},
			{figure: perCPU, of: name, over: []string{bareBoth}},
		},
		open: func(ctx context.Context, b *bench) ([]measure, func() error, error) {
			r, err := b.startReceiver(ctx, receiverParams{})
			if err != nil {
				return nil, nil, err
			}
			return []measure{
				func(ctx context.Context) ([]sample, error) { return b.bare(ctx, r, bareBoth, false) },
				func(ctx context.Context) ([]sample, error) { return delivered(ctx, b, k, r, name) },
				func(ctx context.Context) ([]sample, error) { return b.bare(ctx, r, bareOne, true) },
			}, r.Stop, nil
		},
	}
}

// bare measures POSTs without a library.
func (b *bench) bare(ctx context.Context, r *endpoint, variant string, oneScheme bool) ([]sample, error) {
	n := 0 // without those of the warm-up
	p, err := b.start(ctx, "poster", posterParams{URL: r.url + "/hook/0", N: b.of(60_000, 20_000), Connections: connections, OneScheme: oneScheme}, &n)
	if err != nil {
		return nil, err
	}
	return drained(p, r, nil, variant, n)
}

// delivered measures a dispatcher of the library.
func delivered[Tx any](ctx context.Context, b *bench, k kind[Tx], r *endpoint, variant string) (_ []sample, err error) {
	p, err := k.fresh(ctx, b)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	n, to := b.of(60_000, 20_000), registering{prefix: "sub", n: 10, url: hooks(r.url)}
	if _, err := p.register(ctx, to); err != nil {
		return nil, err
	}
	if err := p.publish(ctx, n, 1<<10, to.inTurn); err != nil {
		return nil, err
	}
	if err := p.settle(ctx); err != nil {
		return nil, err
	}
	d, err := b.start(ctx, "dispatcher", dispatcherParams{Database: p.location, N: n, Profile: b.profile}, nil)
	if err != nil {
		return nil, err
	}
	return warmDrained(d, r, k.meter(ctx, b), variant)
}

// meter reads the CPU time that the database's processes have used, in µs.
type meter func() (float64, error)

func (k kind[Tx]) meter(ctx context.Context, b *bench) meter {
	if k.cpu == nil {
		return nil
	}
	return func() (float64, error) { return k.cpu(ctx, b) }
}

// warmDrained makes a sender do the first part of its work, which is not measured, as
// for bare POSTs, and then measures the rest.
func warmDrained(p *child.Process, r *endpoint, database meter, variant string) ([]sample, error) {
	left := 0
	if err := p.Ask(askWarm, &left); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return drained(p, r, database, variant, left)
}

// drained makes a sender do its n deliveries, and stops it.
func drained(p *child.Process, r *endpoint, database meter, variant string, n int) (_ []sample, err error) {
	defer func() { err = errors.Join(err, p.Stop()) }()
	var t took
	per := 1 / float64(n)
	figures := map[string]float64{}
	ask := func() error { return p.Ask(askGo, &t) }
	if database != nil {
		ask = metered(ask, database, per, figures, databaseCPU)
	}
	if err := metered(ask, r.cpu, per, figures, receiverCPU)(); err != nil {
		return nil, err
	}
	figures[deliveries], figures[senderCPU] = float64(n)/t.Seconds, t.CPU*per
	figures[perCPU] = 1e6 / (figures[senderCPU] + figures[databaseCPU] + figures[receiverCPU])
	return one(variant, figures), nil
}

// metered runs fn and adds the database's CPU time to a figure.
func metered(fn func() error, m meter, per float64, figures map[string]float64, name string) func() error {
	return func() error {
		before, err := m()
		if err != nil {
			return err
		}
		if err := fn(); err != nil {
			return err
		}
		after, err := m()
		figures[name] += (after - before) * per
		return err
	}
}
