package deduptest_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/deduptest"
	"github.com/surehook/surehook/dedup/memory"
)

func inSQLite() []breakage[*sql.Tx] {
	type tx = *sql.Tx
	type b = *broken[tx]
	type h = *deduptest.Harness[tx]
	exec := func(ctx context.Context, tx tx, query string, args ...any) (int64, error) {
		res, err := tx.ExecContext(ctx, query, args...)
		if err != nil {
			return 0, dedup.WrapError(ctx, "executing", err)
		}
		return res.RowsAffected()
	}
	return []breakage[tx]{
		{"a duplicate makes the marker younger", []string{"duplicate-changes-nothing"}, func(b b, _ h) {
			b.mark = func(ctx context.Context, tx tx, scope, id string, at time.Time) (bool, error) {
				fresh, err := b.full.Mark(ctx, tx, scope, id, at)
				if err == nil && !fresh {
					_, err = exec(ctx, tx, "UPDATE surehook_dedup_markers SET marked_at = ? WHERE scope = ? AND id = ?", at.UnixMicro(), scope, id)
				}
				return fresh, err
			}
		}},
		{"reads, then writes, and calls the lost race stale", []string{"read-before-write"}, func(b b, _ h) {
			b.advance = func(ctx context.Context, tx tx, scope string, obj dedup.Object, v int64) (bool, error) {
				newer, err := b.full.Advance(ctx, tx, scope, obj, v)
				if errors.Is(err, dedup.ErrRetryTx) {
					return false, nil
				}
				return newer, err
			}
			b.mark = func(ctx context.Context, tx tx, scope, id string, at time.Time) (bool, error) {
				fresh, err := b.full.Mark(ctx, tx, scope, id, at)
				if errors.Is(err, dedup.ErrRetryTx) {
					return false, errors.New("cannot start a transaction within a transaction")
				}
				return fresh, err
			}
		}},
		{"hands out BUSY bare", []string{"read-before-write"}, func(b b, _ h) {
			b.mark = func(ctx context.Context, tx tx, scope, id string, at time.Time) (bool, error) {
				if err := dedup.CheckMark(scope, id, at); err != nil {
					return false, err
				}
				res, err := tx.ExecContext(ctx, "INSERT OR IGNORE INTO surehook_dedup_markers (scope, id, marked_at) VALUES (?, ?, ?)", scope, id, at.UnixMicro())
				if err != nil {
					return false, err
				}
				n, err := res.RowsAffected()
				return n == 1, err
			}
		}},
		{"the last version wins", []string{"version-order", "concurrent-versions", "uncommitted-version"}, func(b b, _ h) {
			b.advance = func(ctx context.Context, tx tx, scope string, obj dedup.Object, v int64) (bool, error) {
				newer, err := b.full.Advance(ctx, tx, scope, obj, v)
				if err == nil && !newer {
					_, err = exec(ctx, tx, "UPDATE surehook_dedup_versions SET version = ? WHERE scope = ? AND object_type = ? AND object_id = ?",
						v, scope, obj.Type, obj.ID)
				}
				return newer, err
			}
		}},
		{"prunes the newest first", []string{"prune-oldest-first"}, func(b b, _ h) {
			b.prune = func(ctx context.Context, tx tx, before time.Time, limit int) (int, error) {
				if err := dedup.CheckLimit(limit); err != nil {
					return 0, err
				}
				n, err := exec(ctx, tx, `DELETE FROM surehook_dedup_markers WHERE (scope, id) IN
					(SELECT scope, id FROM surehook_dedup_markers WHERE marked_at < ? ORDER BY marked_at DESC LIMIT ?)`, before.UnixMicro(), limit)
				return int(n), err
			}
		}},
		{"prunes by count and not by time", []string{"prune-oldest-first", "prune-batches", "prune-while-marking"}, func(b b, _ h) {
			b.prune = func(ctx context.Context, tx tx, _ time.Time, limit int) (int, error) {
				return b.full.Prune(ctx, tx, time.Now().AddDate(1, 0, 0), limit)
			}
		}},
		{"prunes versions too", []string{"prune-keeps-versions"}, func(b b, _ h) {
			b.prune = func(ctx context.Context, tx tx, before time.Time, limit int) (int, error) {
				n, err := b.full.Prune(ctx, tx, before, limit)
				if err == nil && n > 0 {
					_, err = exec(ctx, tx, "DELETE FROM surehook_dedup_versions")
				}
				return n, err
			}
		}},
		{"prunes requests by their time alone", []string{"reapply-prune"}, func(b b, _ h) {
			b.prune = func(ctx context.Context, tx tx, before time.Time, limit int) (int, error) {
				n, err := b.full.Prune(ctx, tx, before, limit)
				if err == nil {
					_, err = exec(ctx, tx, "DELETE FROM surehook_dedup_reapplies WHERE asked_at < ?", before.UnixMicro())
				}
				return n, err
			}
		}},
		{"gives numbers out again", []string{"reapply-list"}, func(b b, _ h) {
			b.ask = func(ctx context.Context, tx tx, r dedup.Reapply) (int64, error) {
				n, err := b.full.AskReapply(ctx, tx, r)
				if err == nil { // as without AUTOINCREMENT
					_, err = exec(ctx, tx, "UPDATE sqlite_sequence SET seq = 0 WHERE name = 'surehook_dedup_reapplies'")
				}
				return n, err
			}
		}},
		{"serves the requests of all scopes", []string{"reapply-once"}, func(b b, _ h) {
			b.take = func(ctx context.Context, tx tx, scope, id string, obj dedup.Object) (bool, error) {
				due, err := b.full.TakeReapply(ctx, tx, scope, id, obj)
				if due {
					_, err = exec(ctx, tx, "UPDATE surehook_dedup_markers SET reapplied = (SELECT max(number) FROM surehook_dedup_reapplies) WHERE id = ?", id)
				}
				return due, err
			}
		}},
		{"goes by the clock and not by the numbers", []string{"reapply-once"}, func(b b, _ h) {
			b.take = func(ctx context.Context, tx tx, scope, id string, obj dedup.Object) (bool, error) {
				if err := dedup.CheckTakeReapply(scope, id, obj); err != nil {
					return false, err
				}
				n, err := exec(ctx, tx, `UPDATE surehook_dedup_markers SET reapplied = (
					SELECT max(asked_at) FROM surehook_dedup_reapplies AS r WHERE r.scope = surehook_dedup_markers.scope AND event_id IN ('', id))
					WHERE scope = ? AND id = ? AND reapplied < (
					SELECT max(asked_at) FROM surehook_dedup_reapplies AS r WHERE r.scope = surehook_dedup_markers.scope AND event_id IN ('', id))`, scope, id)
				return n == 1, err
			}
		}},
		{"replaces no dead letter", []string{"dead-letters"}, func(b b, _ h) {
			b.setAside = func(ctx context.Context, tx tx, l dedup.DeadLetter) error {
				if _, err := b.full.DeadLetter(ctx, tx, l.Scope, l.ID); err == nil {
					return nil
				}
				return b.full.SetAside(ctx, tx, l)
			}
		}},
		{"lists in another order", []string{"dead-letters-list"}, func(b b, _ h) {
			b.list = func(ctx context.Context, tx tx, scope, after string, limit int) ([]dedup.DeadLetter, error) {
				list, err := b.full.ListDeadLetters(ctx, tx, scope, after, limit)
				slices.SortFunc(list, func(a, b dedup.DeadLetter) int {
					return strings.Compare(strings.ToLower(a.ID), strings.ToLower(b.ID))
				})
				return list, err
			}
		}},
		{"does not look for its file", []string{"lost"}, func(b b, _ h) {
			b.again = func(ctx context.Context, tx tx, _ string, _ dedup.Object, _ int64) (bool, error) {
				_, err := exec(ctx, tx, "UPDATE surehook_dedup_versions SET version = version")
				return err == nil, err
			}
		}},
		{"keeps markers in the process", []string{"reopen"}, func(b b, h h) {
			mem := memory.New()
			var mu sync.Mutex
			txs := map[tx]*memory.Tx{}
			good := h.InTx
			h.InTx = func(ctx context.Context, fn func(tx) error) error {
				return mem.InTx(ctx, func(m *memory.Tx) error {
					return good(ctx, func(t tx) error {
						mu.Lock()
						txs[t] = m
						mu.Unlock()
						return fn(t)
					})
				})
			}
			b.mark = func(ctx context.Context, t tx, scope, id string, at time.Time) (bool, error) {
				mu.Lock()
				m := txs[t]
				mu.Unlock()
				return mem.Mark(ctx, m, scope, id, at)
			}
		}},
	}
}
