package jobs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/jobs"
	jobsmemory "github.com/surehook/surehook/sender/jobs/memory"
	"github.com/surehook/surehook/sender/memory"
)

type (
	tx     = *memory.Tx
	config = jobs.Config[tx]
	kind   = jobs.Kind[tx]
	run    = jobs.Run[tx]
)

// bed is a service with jobs in memory, for tests that do not depend on the store. It
// is made inside a synctest bubble.
type bed struct {
	t     *testing.T
	under *memory.Store
	store *jobsmemory.Store
}

func newBed(t *testing.T) *bed {
	t.Helper()
	under, err := memory.New(nil)
	require.NoError(t, err)
	store, err := jobsmemory.New(under, nil)
	require.NoError(t, err)
	return &bed{t: t, under: under, store: store}
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// jobs returns the Jobs of one process.
func (b *bed) jobs(cfg config, kinds ...kind) *jobs.Jobs[tx] {
	b.t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = quiet
	}
	j, err := jobs.New(b.store, kinds, &cfg)
	require.NoError(b.t, err)
	return j
}

// start runs workers and returns a function that stops them and waits for their end.
func (b *bed) start(j *jobs.Jobs[tx]) (stop func() error) {
	ctx, cancel := context.WithCancel(b.t.Context())
	ran := make(chan error, 1)
	go func() { ran <- j.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ran
	})
	b.t.Cleanup(func() { _ = stop() })
	return stop
}

func (b *bed) submit(j *jobs.Jobs[tx], s jobs.Submission) jobs.Job {
	b.t.Helper()
	if s.Kind == "" {
		s.Kind = "work"
	}
	out, err := j.Submit(b.t.Context(), s)
	require.NoError(b.t, err)
	return out.Job
}

func (b *bed) get(j *jobs.Jobs[tx], id string) jobs.Job {
	b.t.Helper()
	job, err := j.Get(b.t.Context(), jobs.Key{ID: id})
	require.NoError(b.t, err)
	return job
}

// finished lets time pass until a job has ended.
func (b *bed) finished(j *jobs.Jobs[tx], id string) jobs.Job {
	b.t.Helper()
	for range 10_000 {
		synctest.Wait()
		if job := b.get(j, id); job.Status.Finished() {
			return job
		}
		time.Sleep(time.Second) // of the bubble
	}
	b.t.Fatal("the job does not end")
	return jobs.Job{}
}

// work returns a kind with that name.
func work(fn func(ctx context.Context, r *run) (json.RawMessage, error)) kind {
	return kind{Name: "work", Run: fn}
}

// noted is a list that can be read while others add to it.
type noted[T any] struct {
	mu  sync.Mutex
	all []T
}

func (n *noted[T]) add(x T) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, x)
}

func (n *noted[T]) list() []T {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.all)
}

// lockedLog is a log that can be read while others write it.
type lockedLog struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
