package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// These hold for any order of events. Each claim has a token of its own. A final status
// never changes and has its time. A queued job has a due time. A job is begun no more
// often without progress than it may be. A cancellation ends a job that is not running at
// once.
func TestPropertyJobsEndOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		rl := rules{maxTries: rapid.IntRange(1, 4).Draw(t, "max tries")}
		r := Record{Job: Job{Status: Queued, CreatedAt: now}, Due: now}
		begun := 0
		t.Repeat(map[string]func(*rapid.T){
			"time passes": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 3600).Draw(t, "seconds")) * time.Second)
			},
			"claim": func(t *rapid.T) {
				if r.Status.Finished() || r.Due.After(now) {
					return
				}
				lost := r.Status == Running
				token := rapid.Int64Min(1).Draw(t, "token")
				over := r.claim(rl, token, now, time.Minute)
				require.Equal(t, token, r.Token)
				require.Equal(t, Running, r.Status)
				require.True(t, r.Due.After(now))
				if over != nil {
					require.True(t, r.CancelRequested && errors.Is(over, ErrCancelled) || lost && begun >= rl.maxTries && errors.Is(over, ErrPermanent))
					r.end(rl, nil, over, nil, now, 0)
					require.True(t, r.Status.Finished())
					return
				}
				begun++
				require.False(t, r.StartedAt.IsZero())
				require.LessOrEqual(t, r.Tries, rl.maxTries)
			},
			"end": func(t *rapid.T) {
				if r.Status != Running || r.Due.Before(now) {
					return
				}
				asked := r.CancelRequested
				err := rapid.SampledFrom([]error{nil, errors.New("x"), Permanent(errors.New("y")), context.DeadlineExceeded, ErrCancelled, fmt.Errorf("\xff\x00 %w", context.Canceled)}).Draw(t, "error")
				cause := rapid.SampledFrom([]error{nil, ErrDraining, ErrCancelled}).Draw(t, "cause")
				r.end(rl, json.RawMessage(`1`), err, cause, now, rapid.Float64Range(0, 0.99).Draw(t, "chance"))
				switch r.Status {
				case Succeeded:
					require.NoError(t, err)
				case Cancelled:
					require.True(t, asked || errors.Is(cause, ErrCancelled) || errors.Is(err, ErrCancelled))
				case Failed:
					require.Error(t, err)
					require.NotContains(t, r.Error, "\x00")
				case Queued:
					require.Error(t, err)
					require.False(t, r.Due.Before(now))
					if !errors.Is(cause, ErrDraining) {
						require.Less(t, r.Tries, rl.maxTries)
					} else {
						begun--
					}
				default:
					require.Fail(t, "it is still running")
				}
			},
			"cancel": func(t *rapid.T) {
				was := r.Status
				err := r.cancel(now)
				if was.Finished() {
					require.ErrorIs(t, err, ErrFinished)
					require.Equal(t, was, r.Status)
					return
				}
				require.NoError(t, err)
				require.True(t, r.Status == Cancelled || r.CancelRequested)
			},
			"save": func(t *rapid.T) {
				if r.Status == Running {
					before := string(r.State)
					state := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "state")
					r.save([]byte(state))
					if state != before {
						begun = 1
					}
				}
			},
			"": func(t *rapid.T) {
				require.Equal(t, r.Status.Finished(), !r.FinishedAt.IsZero())
				if r.Status.Finished() {
					require.Nil(t, r.State)
					require.True(t, r.Due.IsZero())
					require.Equal(t, r.Status == Succeeded, r.Result != nil)
					require.Equal(t, r.Status == Failed, r.Error != "")
					ended := r
					require.ErrorIs(t, ended.cancel(now), ErrFinished)
				}
				if !r.Status.Finished() {
					require.Equal(t, max(begun, 0), r.Tries)
				}
			},
		})
	})
}
