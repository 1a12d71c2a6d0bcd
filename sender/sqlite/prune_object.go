package sqlite

import (
	"database/sql"

	"github.com/surehook/surehook/internal/ident"
)

const (
	// markForgettable notes the objects whose last events are about to go.
	markForgettable = `INSERT INTO surehook_forgettable (type, id, version, at) SELECT o.type, o.id, o.version, ?2
		FROM json_each(?1) j CROSS JOIN surehook_events e CROSS JOIN surehook_objects o
		WHERE e.seq = j.value AND o.type = e.object_type AND o.id = e.object_id AND o.version = e.version AND o.version <= ?3 RETURNING version`
	liftFloor = `UPDATE surehook_floor SET version = max(version, ?)`

	selectForgettable = `SELECT no, type, id, version, at < ?2 FROM surehook_forgettable WHERE no > ?1 ORDER BY no LIMIT ?3 + 0`
	// forgetObject leaves an object that has a line: with another number the next delivery
	// would pass those in it.
	forgetObject = `DELETE FROM surehook_objects AS o WHERE type = ? AND id = ? AND version = ?
		AND (no = 0 OR NOT EXISTS (SELECT 1 FROM surehook_lines INDEXED BY surehook_lines_object WHERE object = o.no))`
	// deleteForgettable leaves those of objects that stay until their lines are empty.
	deleteForgettable = `DELETE FROM surehook_forgettable AS f WHERE no IN (SELECT value FROM json_each(?))
		AND NOT EXISTS (SELECT 1 FROM surehook_objects o WHERE o.type = f.type AND o.id = f.id AND o.version = f.version)`
)

// markForgettable notes the objects whose last events go, and raises the next versions of
// all objects above theirs.
func (p *pruning) markForgettable(w *work, events []int64) error {
	floor := int64(0)
	versions, err := w.numbers(markForgettable, list(events), p.s.now(), int64(ident.MaxForgotten))
	if err != nil || len(versions) == 0 {
		return err
	}
	for _, version := range versions {
		floor = max(floor, version)
	}
	return w.execs(liftFloor, floor)
}

// objects forgets the last versions of the objects that have no event any more.
func (p *pruning) objects(before int64) (more bool, err error) {
	type object struct {
		kind, id string
		version  int64
	}
	var nos []int64
	var old []object
	err = p.s.read(p.ctx, func(w *work) error {
		return w.each(func(rows *sql.Rows) (bool, error) {
			var no int64
			var o object
			var goes bool
			if err := rows.Scan(&no, &o.kind, &o.id, &o.version, &goes); err != nil || !goes {
				return false, err
			}
			nos, old = append(nos, no), append(old, o)
			p.At.Event = no
			return true, nil
		}, selectForgettable, p.At.Event, before, p.Limit)
	})
	if err != nil || len(old) == 0 {
		return false, err
	}
	err = p.s.write(p.ctx, func(w *work) error {
		for _, o := range old {
			n, err := w.count(forgetObject, o.kind, o.id, o.version)
			if err != nil {
				return err
			}
			p.Out.Objects += n
		}
		return w.execs(deleteForgettable, list(nos))
	})
	return len(old) == p.Limit, err
}
