package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/sender/jobs"
	jobsmemory "github.com/surehook/surehook/sender/jobs/memory"
)

func TestJobRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		var tries noted[jobs.Try]
		var ended noted[jobs.Job]
		type traced struct{}
		j := b.jobs(config{Hooks: jobs.Hooks{
			Started:  func(ctx context.Context, _ jobs.Job) context.Context { return context.WithValue(ctx, traced{}, "span") },
			Ended:    func(_ context.Context, tr jobs.Try) { tries.add(tr) },
			Finished: func(_ context.Context, j jobs.Job) { ended.add(j); panic("contained") },
		}}, work(func(ctx context.Context, r *run) (json.RawMessage, error) {
			require.Equal(t, "span", ctx.Value(traced{}))
			r.Progress(1, 2)
			time.Sleep(3 * time.Second)
			return json.RawMessage(`{"seen":` + string(r.Job().Input) + `}`), nil
		}))
		b.start(j)
		synctest.Wait()
		job := b.submit(j, jobs.Submission{Input: json.RawMessage(`[1]`)})
		require.Equal(t, jobs.Queued, job.Status)
		synctest.Wait()
		require.Equal(t, jobs.Running, b.get(j, job.ID).Status, "it begins at once, without a poll")
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, &jobs.Progress{Done: 1, Total: 2}, b.get(j, job.ID).Progress)
		got := b.finished(j, job.ID)
		require.Equal(t, jobs.Succeeded, got.Status)
		require.JSONEq(t, `{"seen":[1]}`, string(got.Result))
		require.Equal(t, 3*time.Second, got.FinishedAt.Sub(got.StartedAt))
		require.Empty(t, got.Error)
		require.Equal(t, []jobs.Job{got}, ended.list())
		require.Equal(t, []jobs.Try{{Job: got, Took: 3 * time.Second}}, tries.list())
	})
}

func TestFailuresAreTriedAgainAndBounded(t *testing.T) {
	fixed, err := backoff.Fixed(10*time.Second, 20*time.Second)
	require.NoError(t, err)
	for _, c := range []struct {
		name  string
		fails func(ctx context.Context) error
		says  string
	}{
		{"error", func(context.Context) error { return errors.New("no luck") }, "no luck"},
		{"panic", func(context.Context) error { panic("of secrets") }, "the kind's function panicked with a string"},
		{"exit", func(context.Context) error { runtime.Goexit(); return nil }, "the kind's function ended its goroutine"},
		{"timeout", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, jobs.ErrTimeout.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBed(t)
				var at noted[time.Duration]
				start := time.Now()
				k := work(func(ctx context.Context, _ *run) (json.RawMessage, error) {
					at.add(time.Since(start))
					return nil, c.fails(ctx)
				})
				k.MaxTries, k.Schedule, k.Jitter, k.Timeout = 3, fixed, backoff.None(), time.Minute
				j := b.jobs(config{}, k)
				b.start(j)
				job := b.finished(j, b.submit(j, jobs.Submission{}).ID)
				require.Equal(t, jobs.Failed, job.Status)
				require.Equal(t, c.says, job.Error)
				require.Equal(t, 3, job.Tries)
				tries := at.list()
				require.Len(t, tries, 3)
				took := time.Duration(0)
				if c.name == "timeout" {
					took = time.Minute
				}
				require.InDelta(t, (10*time.Second + took).Seconds(), (tries[1] - tries[0]).Seconds(), 1.01, "by the schedule, and the poll that finds it")
				require.InDelta(t, (20*time.Second + took).Seconds(), (tries[2] - tries[1]).Seconds(), 1.01)
			})
		})
	}
}

func TestPermanentFailsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		calls := 0
		cause := errors.New("no such customer\x00\xff" + strings.Repeat("é", 1000))
		j := b.jobs(config{}, work(func(context.Context, *run) (json.RawMessage, error) {
			calls++
			return nil, jobs.Permanent(cause)
		}))
		b.start(j)
		job := b.finished(j, b.submit(j, jobs.Submission{}).ID)
		require.Equal(t, jobs.Failed, job.Status)
		require.Equal(t, 1, calls)
		require.True(t, strings.HasPrefix(job.Error, "no such customer\uFFFD\uFFFDéé"), job.Error)
		require.LessOrEqual(t, len(job.Error), 1024)
		require.ErrorIs(t, jobs.Permanent(cause), cause)
		require.ErrorIs(t, jobs.Permanent(cause), jobs.ErrPermanent)
		require.NoError(t, jobs.Permanent(nil))
	})
}

func TestUnfitResultsFail(t *testing.T) {
	for name, result := range map[string]string{"not JSON": "{", "not UTF-8": "\"\xff\"", "too large": `"` + strings.Repeat("a", 100) + `"`} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBed(t)
				j := b.jobs(config{MaxResultBytes: 100}, work(func(context.Context, *run) (json.RawMessage, error) { return json.RawMessage(result), nil }))
				b.start(j)
				job := b.finished(j, b.submit(j, jobs.Submission{}).ID)
				require.Equal(t, jobs.Failed, job.Status)
				require.Contains(t, job.Error, "the result")
				require.Nil(t, job.Result)
				require.Equal(t, 1, job.Tries)
			})
		})
	}
}

// If a worker dies, another run follows, and goes on from the state that was saved
// last. The first run's context ends, and its later writes change nothing.
func TestLostLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		paused, paralysed := newPauser(b.store)
		var cause, late error
		effects := 0
		first, err := jobs.New[tx](paused, []kind{work(func(ctx context.Context, r *run) (json.RawMessage, error) {
			require.NoError(t, r.InTx(ctx, func(_ tx, s *jobs.Step) error {
				effects++
				s.Save([]byte("one step"))
				s.Progress(1, 2)
				return nil
			}))
			paralysed(true)
			<-ctx.Done()
			cause = context.Cause(ctx)
			time.Sleep(10 * time.Second) // until another one has claimed it
			paralysed(false)
			late = r.InTx(context.WithoutCancel(ctx), func(tx, *jobs.Step) error { effects += 100; return nil })
			return json.RawMessage(`"late"`), nil
		})}, &config{Lease: 30 * time.Second, Logger: quiet})
		require.NoError(t, err)
		b.start(first)
		job := b.submit(first, jobs.Submission{})
		synctest.Wait()

		var resumed noted[string]
		second := b.jobs(config{Lease: 30 * time.Second}, work(func(ctx context.Context, r *run) (json.RawMessage, error) {
			resumed.add(string(r.State()))
			time.Sleep(time.Minute) // until the first one has written
			require.NoError(t, r.InTx(ctx, func(_ tx, s *jobs.Step) error { effects++; return nil }))
			return json.RawMessage(`"in time"`), nil
		}))
		b.start(second)
		got := b.finished(second, job.ID)
		require.Equal(t, []string{"one step"}, resumed.list())
		require.Equal(t, jobs.Succeeded, got.Status)
		require.Equal(t, `"in time"`, string(got.Result))
		require.Equal(t, &jobs.Progress{Done: 1, Total: 2}, got.Progress)
		require.Equal(t, 2, effects)
		require.ErrorIs(t, cause, jobs.ErrLost)
		require.ErrorIs(t, late, jobs.ErrLost)
	})
}

// The log says why a step that takes longer than the lease loses its job: the lease cannot be
// prolonged meanwhile.
func TestStepThatIsLongerThanTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		var log lockedLog
		var causes noted[error]
		j := b.jobs(config{Lease: 30 * time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil))}, work(func(ctx context.Context, r *run) (json.RawMessage, error) {
			if len(causes.list()) > 0 {
				return nil, nil
			}
			return nil, r.InTx(ctx, func(tx, *jobs.Step) error {
				<-ctx.Done()
				causes.add(context.Cause(ctx))
				return ctx.Err()
			})
		}))
		stop := b.start(j)
		job := b.submit(j, jobs.Submission{})
		require.Equal(t, jobs.Succeeded, b.finished(j, job.ID).Status)
		require.NoError(t, stop())
		require.Len(t, causes.list(), 1)
		require.ErrorIs(t, causes.list()[0], jobs.ErrLost)
		require.Contains(t, log.String(), `level=ERROR msg="a job's Run.InTx has taken longer than its lease`)
		require.Contains(t, log.String(), "job="+job.ID+" lease=30s")
	})
}

// A failover loses the commit of a claim, and the job is claimed again. The first run's
// result is refused, because the claims have different tokens.
func TestLostClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		var before jobs.Record
		first := b.jobs(config{}, kind{Name: "work", Concurrency: 1, Run: func(context.Context, *run) (json.RawMessage, error) {
			time.Sleep(5 * time.Second)
			return json.RawMessage(`"late"`), nil
		}})
		job := b.submit(first, jobs.Submission{})
		record := func(do func(tx tx, r jobs.Record) error) {
			require.NoError(t, b.store.InTx(t.Context(), func(tx tx) error {
				r, _, err := b.store.LockTx(t.Context(), tx, jobs.Key{ID: job.ID})
				require.NoError(t, err)
				return do(tx, r)
			}))
		}
		record(func(_ tx, r jobs.Record) error { before = r; return nil })
		b.start(first)
		synctest.Wait() // it runs
		require.Equal(t, jobs.Running, b.get(first, job.ID).Status)
		record(func(tx tx, _ jobs.Record) error { return b.store.UpdateTx(t.Context(), tx, before) })

		second := b.jobs(config{}, work(func(context.Context, *run) (json.RawMessage, error) {
			time.Sleep(10 * time.Second) // until the first one has come back
			return json.RawMessage(`"in time"`), nil
		}))
		b.start(second)
		got := b.finished(second, job.ID)
		require.Equal(t, jobs.Succeeded, got.Status)
		require.Equal(t, `"in time"`, string(got.Result))
	})
}

// A function keeps its job for as many leases as it needs.
func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		calls := 0
		long := work(func(ctx context.Context, _ *run) (json.RawMessage, error) {
			calls++
			select {
			case <-time.After(10 * time.Minute):
			case <-ctx.Done():
			}
			return nil, ctx.Err()
		})
		j, other := b.jobs(config{}, long), b.jobs(config{}, long)
		b.start(j)
		b.start(other)
		got := b.finished(j, b.submit(j, jobs.Submission{}).ID)
		require.Equal(t, jobs.Succeeded, got.Status)
		require.Equal(t, 1, calls)
	})
}

// Tries without progress are bounded, also if they end with their process. They are
// counted anew once another state is saved.
func TestCrashesAreBounded(t *testing.T) {
	for _, test := range []struct {
		saves bool
		tries int
		begun string
	}{{false, 3, "3 times"}, {false, 1, "once"}, {true, 3, ""}} {
		t.Run(fmt.Sprintf("saves %t, %d", test.saves, test.tries), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBed(t)
				calls := 0
				for range 12 {
					paused, paralysed := newPauser(b.store)
					k := work(func(ctx context.Context, r *run) (json.RawMessage, error) {
						calls++
						if test.saves {
							require.NoError(t, r.Save(ctx, []byte(strconv.Itoa(calls))))
						}
						paralysed(true)
						<-ctx.Done()
						return nil, ctx.Err()
					})
					k.MaxTries = test.tries
					j, err := jobs.New[tx](paused, []kind{k}, &config{Logger: quiet})
					require.NoError(t, err)
					if calls == 0 && len(b.all(j)) == 0 {
						b.submit(j, jobs.Submission{})
					}
					stop := b.start(j)
					time.Sleep(2 * time.Minute)
					_ = stop()
				}
				job := b.all(b.jobs(config{}, work(func(context.Context, *run) (json.RawMessage, error) { return nil, nil })))[0]
				if test.saves {
					require.Equal(t, 12, calls)
					require.Equal(t, jobs.Running, job.Status, "its lease has ended")
					return
				}
				require.Equal(t, test.tries, calls)
				require.Equal(t, jobs.Failed, job.Status)
				require.Contains(t, job.Error, "the process that ran it was lost, and it was begun "+test.begun+" without")
			})
		})
	}
}

func TestStepsRollBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		refused := errors.New("refused")
		j := b.jobs(config{MaxStateBytes: 10}, work(func(ctx context.Context, r *run) (json.RawMessage, error) {
			if string(r.State()) != "" {
				return json.Marshal(string(r.State()))
			}
			require.NoError(t, r.Save(ctx, []byte("kept")))
			err := r.InTx(ctx, func(tx tx, s *jobs.Step) error {
				s.Save([]byte("lost"))
				_, _, err := b.store.InsertTx(ctx, tx, jobs.Record{Job: jobs.Job{ID: "job_lost", Kind: "other", Input: json.RawMessage("1")}})
				require.NoError(t, err)
				return refused
			})
			require.ErrorIs(t, err, refused)
			require.Equal(t, "kept", string(r.State()))
			err = r.Save(ctx, make([]byte, 11))
			require.ErrorIs(t, err, jobs.ErrPermanent)
			return nil, errors.New("again")
		}))
		b.start(j)
		got := b.finished(j, b.submit(j, jobs.Submission{}).ID)
		require.Equal(t, `"kept"`, string(got.Result))
		require.Len(t, b.all(j), 1)
	})
}

func TestConcurrencyOfAKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		var at noted[time.Duration]
		start := time.Now()
		slow := work(func(context.Context, *run) (json.RawMessage, error) {
			at.add(time.Since(start))
			time.Sleep(time.Minute)
			return nil, nil
		})
		slow.Concurrency = 2
		other := kind{Name: "other", Run: func(context.Context, *run) (json.RawMessage, error) { return nil, nil }}
		j := b.jobs(config{}, slow, other)
		for range 5 {
			b.submit(j, jobs.Submission{})
		}
		b.start(j)
		synctest.Wait()
		quick := b.submit(j, jobs.Submission{Kind: "other"})
		synctest.Wait()
		require.Equal(t, jobs.Succeeded, b.get(j, quick.ID).Status, "one kind does not wait for another")
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		require.Equal(t, []time.Duration{0, 0, time.Minute, time.Minute, 2 * time.Minute}, at.list(), "the next one begins when one has ended")
	})
}

func (b *bed) all(j *jobs.Jobs[tx]) []jobs.Job {
	b.t.Helper()
	page, _, err := j.List(b.t.Context(), jobs.Query{Limit: 200})
	require.NoError(b.t, err)
	return page
}

// pauser is a store that can be paused: its database does not answer then.
type pauser struct {
	jobs.Store[tx]
	paralysed chan bool
}

func newPauser(s jobs.Store[tx]) (*pauser, func(bool)) {
	p := &pauser{s, make(chan bool, 1)}
	p.paralysed <- false
	return p, func(on bool) {
		<-p.paralysed
		p.paralysed <- on
	}
}

var errAway = errors.New("the database is away")

func (p *pauser) Check(ctx context.Context) error {
	away := <-p.paralysed
	p.paralysed <- away
	if away {
		return errAway
	}
	return p.Store.Check(ctx)
}

func (p *pauser) InTx(ctx context.Context, fn func(tx) error) error {
	away := <-p.paralysed
	p.paralysed <- away
	if away {
		return errAway
	}
	return p.Store.InTx(ctx, fn)
}

// late is a store whose callers learn late that a transaction has committed.
type late struct {
	*jobsmemory.Store
	by atomic.Int64 // of the transaction that sets it
}

func (l *late) InTx(ctx context.Context, fn func(tx tx) error) error {
	err := l.Store.InTx(ctx, fn)
	time.Sleep(time.Duration(l.by.Swap(0)))
	return err
}

// The lease is prolonged between a step's commit and its return, which must not take the
// step's progress back.
func TestProgressOfAStepStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		store := &late{Store: b.store}
		var j *jobs.Jobs[tx]
		var err error
		var stored []*jobs.Progress
		j, err = jobs.New[tx](store, []kind{work(func(ctx context.Context, r *run) (json.RawMessage, error) {
			r.Progress(1, 3)
			time.Sleep(20500 * time.Millisecond) // when nothing else is due
			for done := range int64(2) {
				if err := r.InTx(ctx, func(_ tx, s *jobs.Step) error {
					s.Progress(done+2, 3)
					store.by.Store(int64(20 * time.Second)) // within it the lease is prolonged
					return nil
				}); err != nil {
					return nil, err
				}
				stored = append(stored, b.get(j, r.Job().ID).Progress)
			}
			return nil, nil
		})}, &config{Lease: 30 * time.Second, Logger: quiet})
		require.NoError(t, err)
		job := b.submit(j, jobs.Submission{})
		b.start(j)
		require.Equal(t, jobs.Succeeded, b.finished(j, job.ID).Status)
		require.Equal(t, []*jobs.Progress{{Done: 2, Total: 3}, {Done: 3, Total: 3}}, stored)
	})
}
