package main

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/surehook/surehook/internal/proof/bench/child"
	"github.com/surehook/surehook/internal/proof/bench/post"
	"github.com/surehook/surehook/signing"
)

// posterParams say which events a poster posts: N events from number First on, each
// once.
type posterParams struct {
	URL         string
	First, N    int
	Connections int
	OneScheme   bool // sign as the receiver's default needs it, and no more
}

// took is the time that a process needed for its work.
type took struct {
	Seconds float64
	CPU     float64 // in µs, of the process
}

// postAll is the poster's process. It makes its events before it is ready, and
// warms up by posting some of the first ones.
func postAll() error {
	var p posterParams
	ctx, parent, err := child.Open(&p)
	if err != nil {
		return err
	}
	schemes := signing.DefaultSchemes()
	if p.OneScheme {
		schemes = []signing.Scheme{signing.TimestampBody{}}
	}
	client, err := post.New(p.Connections, schemes)
	if err != nil {
		return parent.Fail(err)
	}
	u, err := url.Parse(p.URL)
	if err != nil {
		return parent.Fail(err)
	}
	job := &posting{client: client, url: u, events: make([]posted, p.N)}
	for i := range job.events {
		job.events[i].id, job.events[i].body = post.Event(p.First + i)
	}
	warm := p.N / 20
	if err := job.run(ctx, 0, warm, p.Connections); err != nil {
		return parent.Fail(err)
	}
	if err := parent.Answer(p.N - warm); err != nil {
		return err
	}
	return child.Answers(parent, func(string) (any, error) {
		cpu, began := child.CPU(), time.Now()
		err := job.run(ctx, warm, p.N, p.Connections)
		return took{Seconds: time.Since(began).Seconds(), CPU: child.CPU() - cpu}, err
	})
}

// posting has the events to be posted.
type posting struct {
	client *post.Client
	url    *url.URL
	events []posted
}

type posted struct {
	id   string
	body []byte
}

// run posts the events from one index to another, on a number of connections at a time.
func (p *posting) run(ctx context.Context, from, to, connections int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	next.Store(int64(from) - 1)
	var wg sync.WaitGroup
	for range connections {
		wg.Go(func() {
			for i := int(next.Add(1)); i < to && ctx.Err() == nil; i = int(next.Add(1)) {
				e := &p.events[i]
				if err := p.client.Post(ctx, p.url, e.id, 1, e.body); err != nil {
					cancel(fmt.Errorf("posting event %s: %w", e.id, err))
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}
