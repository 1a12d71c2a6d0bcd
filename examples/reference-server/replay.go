package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/jobs"
	"github.com/surehook/surehook/sender/replay"
)

// ReplayDeliveries is the input of replay: which deliveries are sent again.
type ReplayDeliveries struct {
	Status         string     `json:"status,omitempty" enum:"dead_lettered,delivered,superseded" doc:"The default is dead_lettered."`
	SubscriptionID string     `json:"subscription_id,omitempty" minLength:"1" doc:"Of one subscription."`
	SubscriberID   string     `json:"subscriber_id,omitempty" minLength:"1" doc:"Of one owner's subscriptions. A subscriber can name itself alone, and need not."`
	EventType      string     `json:"event_type,omitempty" pattern:"^(\\*|[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*(\\.\\*)?)$" patternDescription:"an exact type, prefix.* or *" maxLength:"128" doc:"An exact type, prefix.* or *, which is the default."`
	ErrorClass     string     `json:"error_class,omitempty" enum:"dns,connect,tls,timeout,reset,status,redirect,blocked,interrupted,protocol" doc:"Those whose last attempt failed in this way."`
	StatusCode     integer    `json:"status_code,omitempty" minimum:"100" maximum:"999" doc:"Those whose last attempt was answered with it."`
	Since          time.Time  `json:"since,omitzero" doc:"Events that were published at it or later."`
	Until          *time.Time `json:"until,omitempty" doc:"Events that were published before it."`
	RatePerSecond  float64    `json:"rate_per_second,omitempty" minimum:"0" doc:"0: as fast as there is room."`
	DryRun         bool       `json:"dry_run,omitempty" doc:"Only count."`
}

// Replayed is the result of replay.
type Replayed struct {
	Matched  int64 `json:"matched" doc:"How many deliveries matched."`
	Replayed int64 `json:"replayed" doc:"How many were sent again."`
	More     bool  `json:"more,omitempty" doc:"More may match: the replay was cancelled before all were counted."`
}

// replayState is what a replay's job goes on from. Admitted rises while it gets on.
type replayState struct {
	Replay   string `json:"replay"`
	Admitted int64  `json:"admitted"`
}

// replayLook is how often a job looks how far its replay has come.
const replayLook = 200 * time.Millisecond

func (r *ReplayDeliveries) filter() replay.Filter {
	return replay.Filter{
		Status: sender.Status(r.Status), Subscription: r.SubscriptionID, Subscriber: r.SubscriberID, EventType: r.EventType,
		ErrorClass: sender.Class(r.ErrorClass), StatusCode: int(r.StatusCode), Since: r.Since, Until: asBound(r.Until),
	}
}

// replayDryRun is the kind of the jobs that only count, which have places of their own. Callers see
// the kind that they asked for.
const replayDryRun = "replay.dry_run"

// keptAs is the kind of a job that is asked for, as the workers know it.
func keptAs(n NewJob) string {
	var in ReplayDeliveries
	if n.Kind == "replay" && json.Unmarshal(n.Input, &in) == nil && in.DryRun {
		return replayDryRun
	}
	return n.Kind
}

// replays are those that the owner of a job may have.
type replays interface {
	Create(ctx context.Context, n replay.Request) (replay.Replay, error)
	Preview(ctx context.Context, f replay.Filter) (replay.Preview, error)
	Get(ctx context.Context, id string) (replay.Replay, error)
	Cancel(ctx context.Context, id string) (replay.Replay, error)
}

// replaysOf are a subscriber's own, and everybody's for the operator.
func (s *service) replaysOf(owner string) replays {
	if owner == sender.Operator {
		return s.replays
	}
	return s.replays.ForSubscriber(owner)
}

func (s *service) checkReplay(ctx context.Context, tx *sql.Tx, c caller, input json.RawMessage) error {
	var in ReplayDeliveries
	if err := json.Unmarshal(input, &in); err != nil {
		return badInput(err)
	}
	if in.Until != nil && !in.Since.IsZero() && !in.Since.Before(*in.Until) {
		return invalid("body.input.until", "it must be later than since")
	}
	if in.SubscriberID != "" && !c.owns(in.SubscriberID) {
		return invalid("body.input.subscriber_id", "there is no such subscriber")
	}
	if err := textOnly("body.input.subscriber_id", in.SubscriberID); err != nil {
		return err
	}
	if in.SubscriptionID == "" {
		return nil
	}
	if err := textOnly("body.input.subscription_id", in.SubscriptionID); err != nil {
		return err
	}
	_, err := s.own(ctx, tx, c, sender.SubscriptionKey{ID: in.SubscriptionID})
	var p *Problem
	if errors.As(err, &p) {
		return invalid("body.input.subscription_id", "there is no such subscription")
	}
	return err
}

// replay has the library send the deliveries again, and reports how far it has come. The
// library's replay survives a restart.
func (s *service) replay(ctx context.Context, run *jobs.Run[*sql.Tx]) (json.RawMessage, error) {
	in, err := inputOf[ReplayDeliveries](run)
	if err != nil {
		return nil, err
	}
	filter, own := in.filter(), s.replaysOf(run.Job().Owner)
	if in.DryRun {
		preview, err := own.Preview(ctx, filter)
		if err != nil {
			return nil, forGood(err)
		}
		return json.Marshal(Replayed{Matched: preview.Count})
	}
	state, err := stateOf[replayState](run)
	if err != nil {
		return nil, err
	}
	if state.Replay == "" {
		r, err := own.Create(ctx, replay.Request{ID: replayOf(run.Job()), Filter: filter, Rate: in.RatePerSecond, By: run.Job().ID})
		if err != nil {
			return nil, forGood(err)
		}
		state.Replay = r.ID
		if err := s.saveReplay(ctx, run, state, r); err != nil {
			return nil, err
		}
	}
	return s.followReplay(ctx, own, run, state)
}

// replayOf is the id of a job's replay: by it, each run of the job has the same one.
func replayOf(j jobs.Job) string { return "rpl_" + j.ID }

// endReplayOf cancels the replay of a job that was cancelled while no process ran it: the
// one that did was stopped, or was lost.
func (s *service) endReplayOf(ctx context.Context, j jobs.Job) {
	if j.Kind != "replay" || j.Status != jobs.Cancelled {
		return
	}
	_, err := s.replaysOf(j.Owner).Cancel(context.WithoutCancel(ctx), replayOf(j))
	if err != nil && !errors.Is(err, sender.ErrStatus) && !errors.Is(err, sender.ErrNotFound) { // it has come to its end, or never began
		s.log.Error("a job was cancelled, and its replay may go on", "job", j.ID, "error", err)
	}
}

// endLeftReplays cancels the replays of cancelled jobs that go on: the process in which endReplayOf
// was to be called was lost before.
func (s *service) endLeftReplays(ctx context.Context) error {
	for q := (replay.Query{Limit: 200}); ; {
		page, err := s.replays.List(ctx, q)
		if err != nil {
			return err
		}
		for _, r := range page {
			if r.Status == replay.Finished || r.Status == replay.Cancelled {
				continue
			}
			j, err := s.jobs.Get(ctx, jobs.Key{ID: r.By})
			if errors.Is(err, jobs.ErrNotFound) { // somebody else has asked for it
				continue
			}
			if err == nil && j.Status == jobs.Cancelled {
				_, err = s.replays.Cancel(ctx, r.ID)
			}
			if err != nil && !errors.Is(err, sender.ErrStatus) { // it has come to its end
				return err
			}
		}
		if len(page) < q.Limit {
			return nil
		}
		q.After = page[len(page)-1].ID
	}
}

func (s *service) followReplay(ctx context.Context, own replays, run *jobs.Run[*sql.Tx], state replayState) (json.RawMessage, error) {
	tick := time.NewTicker(replayLook)
	defer tick.Stop()
	for {
		r, err := own.Get(ctx, state.Replay)
		if err != nil && ctx.Err() == nil {
			return nil, forGood(err)
		}
		ended := err == nil && (r.Status == replay.Finished || r.Status == replay.Cancelled)
		if err == nil && (ended || r.Admitted > state.Admitted) {
			state.Admitted = r.Admitted
			if err := s.saveReplay(ctx, run, state, r); err != nil && ctx.Err() == nil {
				return nil, err
			}
		}
		if ended {
			return json.Marshal(Replayed{Matched: r.Matched, Replayed: r.Admitted, More: r.More})
		}
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), jobs.ErrCancelled) {
				_, err := own.Cancel(context.WithoutCancel(ctx), state.Replay)
				if err != nil && !errors.Is(err, sender.ErrStatus) {
					return nil, err
				}
			}
			return nil, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

func (s *service) saveReplay(ctx context.Context, run *jobs.Run[*sql.Tx], state replayState, r replay.Replay) error {
	return run.InTx(ctx, func(_ *sql.Tx, step *jobs.Step) error {
		step.Progress(progressOf(r))
		return save(step, state)
	})
}

// progressOf is how much of a replay is done, and of how much: 0 if that is not known.
func progressOf(r replay.Replay) (done, total int64) {
	if total = r.Matched; r.More {
		total = 0
	}
	return r.Admitted + r.Skipped, total
}

// forGood marks an error that another try would not change.
func forGood(err error) error {
	for _, final := range []error{sender.ErrInvalid, sender.ErrNotFound, sender.ErrRetention} {
		if errors.Is(err, final) {
			return jobs.Permanent(errors.New(plain(err)))
		}
	}
	return err
}
