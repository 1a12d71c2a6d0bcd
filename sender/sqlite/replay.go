package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/replay"
)

const replayColumns = `no, id, filter, subscription, rate, asked_by, reason, status, boundary, position, position_in, not_before, rate_at, next_at, blocked_at, matched, more, admitted, skipped, too_old, created_at, finished_at`

const (
	insertReplay = `INSERT INTO surehook_replays (id, filter, status_of, subscriber, subscription, rate, asked_by, reason, status,
			boundary, position, position_in, not_before, rate_at, turn, matched, more, admitted, skipped, created_at, next_at, blocked_at, finished_at, ended_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'running', ?, ?, ?, ?, 0, ?, ?, ?, 0, 0, ?, ?, 0, 0, 0) ON CONFLICT DO NOTHING`
	countUnfinished  = `SELECT count(*) FROM (SELECT 1 FROM surehook_replays WHERE subscriber = ? AND status IN ('running', 'paused') LIMIT ? + 0)`
	selectReplay     = `SELECT ` + replayColumns + ` FROM surehook_replays WHERE id = ?`
	selectReplays    = `SELECT ` + replayColumns + ` FROM surehook_replays WHERE no < ? ORDER BY no DESC LIMIT ? + 0`
	selectReplaysOf  = `SELECT ` + replayColumns + ` FROM surehook_replays WHERE subscriber = ? AND no < ? ORDER BY no DESC LIMIT ? + 0`
	updateReplay     = `UPDATE surehook_replays SET status = ?, finished_at = ?, ended_at = ?, next_at = ?, blocked_at = 0 WHERE no = ?`
	deleteReplayLate = `DELETE FROM surehook_replay_late WHERE replay = ?`
)

// replay is the row of a replay, and how far it is.
type replayRow struct {
	replay.Replay
	no        int64
	set       replaySet
	notBefore int64
	rateAt    int64
	nextAt    int64
	blockedAt int64
}

func scanReplay(row interface{ Scan(to ...any) error }) (r replayRow, err error) {
	var filter []byte
	var created, finished int64
	err = row.Scan(&r.no, &r.ID, &filter, &r.set.subscription, &r.Rate, &r.By, &r.Reason, &r.Status, &r.set.boundary, &r.set.at.no, &r.set.at.subscription, &r.notBefore, &r.rateAt, &r.nextAt, &r.blockedAt,
		&r.Matched, &r.More, &r.Admitted, &r.Skipped, &r.TooOld, &created, &finished)
	if err == nil {
		err = json.Unmarshal(filter, &r.Filter)
	}
	r.set.replay, r.set.filter = r.no, r.Filter
	r.CreatedAt, r.FinishedAt = timeOf(created), timeOf(finished)
	return r, err
}

func (w *work) replay(id string) (replayRow, error) {
	r, err := scanReplay(w.row(selectReplay, id))
	if errors.Is(err, sql.ErrNoRows) {
		return r, fmt.Errorf("%w: replay %q", sender.ErrNotFound, id)
	}
	return r, fail("reading a replay", err)
}

// CreateReplay implements replay.Store. It reads where the set of dead letters
// ends, then counts the set, then stores the replay. A set of delivered deliveries is
// fixed when the replay is stored.
func (s *Store) CreateReplay(ctx context.Context, r replay.Replay, b replay.Bounds) (replay.Replay, error) {
	set := replaySet{filter: r.Filter}
	err := s.read(ctx, func(w *work) error { return w.begin(&set) })
	if err != nil {
		return replay.Replay{}, fail("looking for what to replay", err)
	}
	survey, err := s.survey(ctx, set, b.Look)
	if err != nil {
		return replay.Replay{}, fail("looking for what to replay", err)
	}
	if err := survey.Within(b.NotBefore); err != nil {
		return replay.Replay{}, err
	}
	if f, must := survey.Aged(r.Filter, b.NotBefore); must {
		aged, err := s.surveyAged(ctx, set, f, b.Look)
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
	now := s.now()
	survey.Counted(&r)
	r.CreatedAt, r.Status = timeOf(now), replay.Running
	r.ID = cmp.Or(r.ID, newid.New("rpl_", r.CreatedAt))
	r.Admitted, r.Skipped, r.TooOld, r.FinishedAt = 0, 0, 0, timeOf(0)
	err = s.write(ctx, func(w *work) error {
		if b.Unfinished > 0 {
			unfinished := 0
			if err := w.row(countUnfinished, r.Filter.Subscriber, b.Unfinished).Scan(&unfinished); err != nil {
				return err
			}
			if err := b.Room(unfinished); err != nil {
				return err
			}
		}
		res, err := w.exec(insertReplay, r.ID, string(filter), string(r.Filter.Status), r.Filter.Subscriber, set.subscription, r.Rate, r.By, r.Reason,
			set.boundary, set.at.no, set.at.subscription, micros(b.NotBefore), s.turns.Add(1), r.Matched, r.More, now, now)
		if err != nil {
			return err
		}
		if created, err := res.RowsAffected(); err != nil {
			return err
		} else if created == 0 {
			return fmt.Errorf("%w: replay %q", sender.ErrExists, r.ID)
		}
		return w.changed() // recordings heed replays of delivered deliveries
	})
	if errors.Is(err, sender.ErrStatus) || errors.Is(err, sender.ErrExists) {
		return replay.Replay{}, err
	}
	if err != nil {
		return replay.Replay{}, fail("creating a replay", err)
	}
	s.Wake()
	return r, nil
}

// PreviewReplay implements replay.Store.
func (s *Store) PreviewReplay(ctx context.Context, f replay.Filter, most int) (replay.Preview, error) {
	set := replaySet{filter: f}
	err := s.read(ctx, func(w *work) error { return w.begin(&set) })
	if err != nil {
		return replay.Preview{}, fail("previewing a replay", err)
	}
	survey, err := s.survey(ctx, set, most)
	if err != nil {
		return replay.Preview{}, fail("previewing a replay", err)
	}
	return survey.Preview(), nil
}

// Replay implements replay.Store.
func (s *Store) Replay(ctx context.Context, id string) (out replay.Replay, err error) {
	err = s.read(ctx, func(w *work) error {
		r, err := w.replay(id)
		out = r.Replay
		return err
	})
	return out, err
}

// Replays implements replay.Store.
func (s *Store) Replays(ctx context.Context, q replay.Query) (page []replay.Replay, err error) {
	err = s.read(ctx, func(w *work) error {
		before := int64(never)
		if q.After != "" {
			r, err := w.replay(q.After)
			if err != nil {
				return err
			}
			before = r.no
		}
		query, args := selectReplays, []any{before, q.Limit}
		if q.Subscriber != "" {
			query, args = selectReplaysOf, []any{q.Subscriber, before, q.Limit}
		}
		rs, err := w.replays(query, args...)
		for i := range rs {
			page = append(page, rs[i].Replay)
		}
		return fail("listing replays", err)
	})
	return page, err
}

func (w *work) replays(query string, args ...any) (all []replayRow, err error) {
	err = w.each(func(rows *sql.Rows) (bool, error) {
		r, err := scanReplay(rows)
		all = append(all, r)
		return true, err
	}, query, args...)
	return all, err
}

// SetReplayStatus implements replay.Store.
func (s *Store) SetReplayStatus(ctx context.Context, id string, to replay.Status) (out replay.Replay, err error) {
	switch to {
	case replay.Running, replay.Paused, replay.Cancelled:
	default:
		return out, fmt.Errorf("%w status %q: a replay can be made running, paused or cancelled", sender.ErrInvalid, to)
	}
	err = s.write(ctx, func(w *work) error {
		r, err := w.replay(id)
		if err != nil {
			return err
		}
		changes, err := r.Status.Become(to)
		if err != nil {
			return err
		}
		if changes {
			r.Status = to
			err = w.endReplay(&r, s.now())
		}
		out = r.Replay
		return fail("changing a replay", err)
	})
	if err != nil {
		return replay.Replay{}, err
	}
	s.Wake()
	return out, nil
}

// endReplay stores a replay's status. If the replay has ended, it forgets what was needed
// until then. If it runs, it may go on now.
func (w *work) endReplay(r *replayRow, now int64) error {
	endedAt := int64(0)
	if r.Status != replay.Running && r.Status != replay.Paused {
		endedAt = now
	}
	err := w.execs(updateReplay, string(r.Status), micros(r.FinishedAt), endedAt, now, r.no)
	if err != nil || endedAt == 0 || r.Filter.Status != sender.StatusDelivered {
		return err
	}
	if err := w.execs(deleteReplayLate, r.no); err != nil {
		return err
	}
	return w.changed()
}
