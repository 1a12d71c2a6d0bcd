package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/replay"
)

const replayColumns = `r.no, r.id, r.filter, r.subscription, r.rate, r.asked_by, r.reason, r.status, r.boundary, r.at, r.at_subscription, r.not_before, r.rate_at, r.next_at, r.blocked_at,
	r.matched, r.more, r.admitted, r.skipped, r.too_old, r.created_at, r.finished_at`

const (
	insertReplay = `INSERT INTO surehook_replays (id, filter, status_of, subscriber, subscription, rate, asked_by, reason, status,
			boundary, at, at_subscription, not_before, turn, matched, more, created_at, next_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'running', $9, $10, $11, $12, $13, $14, $15, $16, $16)`
	countUnfinished = `SELECT count(*) FROM (SELECT 1 FROM surehook_replays WHERE subscriber = $1 AND status IN ('running', 'paused') LIMIT $2) x`
	selectReplay    = `SELECT ` + replayColumns + ` FROM surehook_replays r WHERE r.id = $1`
	selectReplays   = `SELECT ` + replayColumns + ` FROM surehook_replays r WHERE r.no < $1 ORDER BY r.no DESC LIMIT $2`
	selectReplaysOf = `SELECT ` + replayColumns + ` FROM surehook_replays r WHERE r.subscriber = $3 AND r.no < $1 ORDER BY r.no DESC LIMIT $2`
	updateReplay    = `UPDATE surehook_replays SET status = $2, next_at = $3, blocked_at = NULL, ended_at = $4 WHERE no = $1`
)

// replay is a row of surehook_replays.
type replayRow struct {
	replay.Replay
	no        int64
	set       replaySet
	notBefore timestamp
	rateAt    timestamp
	nextAt    timestamp
	blockedAt timestamp
}

func scanReplay(rows rows, more ...any) (r replayRow, err error) {
	var filter []byte
	var created, finished timestamp
	err = rows.Scan(append([]any{&r.no, &r.ID, &filter, &r.set.subscription, &r.Rate, &r.By, &r.Reason, &r.Status, &r.set.boundary,
		&r.set.at.no, &r.set.at.subscription, &r.notBefore, &r.rateAt, &r.nextAt, &r.blockedAt, &r.Matched, &r.More, &r.Admitted, &r.Skipped, &r.TooOld, &created, &finished}, more...)...)
	if err == nil {
		err = json.Unmarshal(filter, &r.Filter)
	}
	r.set.replay, r.set.filter = r.no, r.Filter
	r.CreatedAt, r.FinishedAt = created.time(), finished.time()
	return r, err
}

// replayOf finds a replay by its id. locking is the end of the query.
func (w *work) replayOf(id, locking string) (r replayRow, err error) {
	found := false
	err = w.each(func(rows rows) (bool, error) {
		found = true
		var err error
		r, err = scanReplay(rows)
		return false, err
	}, selectReplay+locking, soughtID(id))
	if err == nil && !found {
		return r, fmt.Errorf("%w: replay %q", sender.ErrNotFound, id)
	}
	return r, fail("reading a replay", err)
}

// CreateReplay implements replay.Store. For dead letters lockEnded fixes the set,
// then its members are counted, and then the replay is stored. For delivered deliveries
// lockLate fixes the set when the replay is stored. Neither lock is held while they are
// counted.
func (c *core) CreateReplay(ctx context.Context, r replay.Replay, b replay.Bounds) (replay.Replay, error) {
	set, given := replaySet{filter: r.Filter}, r.ID
	err := c.write(ctx, func(w *work) error { return w.resolve(&set, lockEnded) })
	if err != nil {
		return replay.Replay{}, fail("looking for what to replay", heldTable("surehook_ended", err))
	}
	survey, err := c.survey(ctx, set, b.Look)
	if err != nil {
		return replay.Replay{}, fail("looking for what to replay", err)
	}
	if err := survey.Within(b.NotBefore); err != nil {
		return replay.Replay{}, err
	}
	if f, must := survey.Aged(r.Filter, b.NotBefore); must {
		aged, err := c.surveyAged(ctx, set, f, b.Look)
		if err != nil {
			return replay.Replay{}, fail("looking for what is too old to replay", err)
		}
		if err := aged.NoneAged(b.NotBefore); err != nil {
			return replay.Replay{}, err
		}
	}
	filter, err := json.Marshal(r.Filter)
	if err != nil {
		return replay.Replay{}, fmt.Errorf("%w filter: %w", sender.ErrInvalid, err)
	}
	survey.Counted(&r)
	r.Status = replay.Running
	r.Admitted, r.Skipped, r.TooOld, r.FinishedAt = 0, 0, 0, time.Time{}
	err = c.write(ctx, func(w *work) error {
		if err := w.roomForReplay(r.Filter.Subscriber, b); err != nil {
			return err
		}
		r.CreatedAt = w.now.time()
		r.ID = cmp.Or(given, newid.New("rpl_", r.CreatedAt))
		if r.Filter.Status == sender.StatusDelivered {
			if err := w.execs(boundLock); err != nil {
				return fail("creating a replay", err)
			}
			if err := w.execs(lockLate); err != nil {
				return fail("creating a replay", err)
			}
			if err := w.pipeline.flush(ctx); err != nil { // as it is, so that recordings do not wait for another run
				return err
			}
			if err := w.roomForReplay(r.Filter.Subscriber, b); err != nil { // now others of the same moment are seen
				return err
			}
		}
		return w.execs(insertReplay, r.ID, string(filter), string(r.Filter.Status), r.Filter.Subscriber, set.subscription,
			r.Rate, r.By, r.Reason, set.boundary, set.at.no, set.at.subscription, timestampOf(b.NotBefore), c.turns.Add(1), r.Matched, r.More, w.now)
	})
	if errors.Is(err, sender.ErrStatus) {
		return replay.Replay{}, err
	}
	if failedAs(err, "23505") { // nothing else of it is unique
		return replay.Replay{}, fmt.Errorf("%w: replay %q", sender.ErrExists, r.ID)
	}
	if err != nil {
		return replay.Replay{}, fail("creating a replay", heldTable("surehook_replay_late", err))
	}
	c.Wake()
	return r, nil
}

// roomForReplay returns the error of Bounds.Room, if there is a bound.
func (w *work) roomForReplay(subscriber string, b replay.Bounds) error {
	if b.Unfinished <= 0 {
		return nil
	}
	unfinished := 0
	if err := w.row(countUnfinished, subscriber, b.Unfinished).Scan(&unfinished); err != nil {
		return err
	}
	return b.Room(unfinished)
}

// heldTable says what to do if a replay was not created because its lock of a table had to wait.
func heldTable(table string, err error) error {
	if !failedAs(err, "55P03") {
		return err
	}
	return fmt.Errorf("another session holds the table %s, as one that vacuums it does: create the replay again once that is over: %w", table, err)
}

// failedAs tells whether PostgreSQL has failed with a code (PostgreSQL, appendix A).
func failedAs(err error, code string) bool {
	var pg interface{ SQLState() string }
	return errors.As(err, &pg) && pg.SQLState() == code
}

// PreviewReplay implements replay.Store.
func (c *core) PreviewReplay(ctx context.Context, f replay.Filter, most int) (replay.Preview, error) {
	set := replaySet{filter: f}
	err := c.read(ctx, func(w *work) error { return w.resolve(&set, "") })
	if err != nil {
		return replay.Preview{}, fail("previewing a replay", err)
	}
	survey, err := c.survey(ctx, set, most)
	if err != nil {
		return replay.Preview{}, fail("previewing a replay", err)
	}
	return survey.Preview(), nil
}

// Replay implements replay.Store.
func (c *core) Replay(ctx context.Context, id string) (out replay.Replay, err error) {
	err = c.read(ctx, func(w *work) error {
		r, err := w.replayOf(id, "")
		out = r.Replay
		return err
	})
	return out, err
}

// Replays implements replay.Store.
func (c *core) Replays(ctx context.Context, q replay.Query) (page []replay.Replay, err error) {
	err = c.read(ctx, func(w *work) error {
		before := int64(math.MaxInt64)
		if q.After != "" {
			r, err := w.replayOf(q.After, "")
			if err != nil {
				return err
			}
			before = r.no
		}
		query, args := selectReplays, []any{before, q.Limit}
		if q.Subscriber != "" {
			query, args = selectReplaysOf, append(args, q.Subscriber)
		}
		return fail("listing replays", w.each(func(rows rows) (bool, error) {
			r, err := scanReplay(rows)
			page = append(page, r.Replay)
			return true, err
		}, query, args...))
	})
	return page, err
}

// SetReplayStatus implements replay.Store.
func (c *core) SetReplayStatus(ctx context.Context, id string, to replay.Status) (out replay.Replay, err error) {
	switch to {
	case replay.Running, replay.Paused, replay.Cancelled:
	default:
		return out, fmt.Errorf("%w status %q: a replay can be made running, paused or cancelled", sender.ErrInvalid, to)
	}
	err = c.write(ctx, func(w *work) error {
		r, err := w.replayOf(id, ` FOR UPDATE`)
		if err != nil {
			return err
		}
		changes, err := r.Status.Become(to)
		if err != nil {
			return err
		}
		if changes {
			r.Status = to
			endedAt := none
			if r.ended() {
				endedAt = w.now
			}
			err = w.execs(updateReplay, r.no, string(to), w.now, endedAt)
		}
		if err == nil && changes && r.ended() {
			err = w.forgetLate([]*replayRow{&r})
		}
		out = r.Replay
		return fail("changing a replay", err)
	})
	if err != nil {
		return replay.Replay{}, err
	}
	c.Wake()
	return out, nil
}

// ended tells whether a replay is over.
func (r *replayRow) ended() bool {
	return r.Status != replay.Running && r.Status != replay.Paused
}
