package postgres

const (
	// markForgettable notes the objects whose last events are about to go, and raises the
	// floor of all versions to theirs. The objects go later: whoever publishes now may have
	// read the floor before, and would begin anew below it.
	markForgettable = `WITH m AS (INSERT INTO surehook_forgettable (type, id, version, at)
			SELECT o.type, o.id, o.version, {now} FROM surehook_events e
			CROSS JOIN LATERAL (SELECT * FROM surehook_objects WHERE type = e.object_type AND id = e.object_id OFFSET 0) o
			WHERE e.no = ANY($1) AND o.version = e.version AND o.version <= $2 RETURNING version)
		UPDATE surehook_floor f SET version = m.version FROM (SELECT max(version) AS version FROM m) m WHERE f.version < m.version`

	selectForgettable = `SELECT no, at < $2 FROM surehook_forgettable WHERE no > $1 ORDER BY no LIMIT $3`
	// forgetObjects forgets the objects that still have the same versions. An object that
	// somebody is publishing about is left to another time.
	forgetObjects = `WITH f AS MATERIALIZED (SELECT no, type, id, version FROM surehook_forgettable WHERE no = ANY($1)),
		o AS MATERIALIZED (SELECT f.no, o.ctid AS at, o.version = f.version AS same FROM f
			JOIN surehook_objects o ON o.type = f.type AND o.id = f.id ORDER BY f.no FOR UPDATE OF o SKIP LOCKED),
		d AS (DELETE FROM surehook_objects x USING o WHERE x.ctid = o.at AND o.same RETURNING 1),
		m AS (DELETE FROM surehook_forgettable x USING f WHERE x.no = f.no AND (f.no IN (SELECT no FROM o)
			OR NOT EXISTS (SELECT 1 FROM surehook_objects y WHERE y.type = f.type AND y.id = f.id)))
		SELECT count(*) FROM d`
)

// objects forgets the last versions of objects that have no events left.
func (p *pruning) objects(before timestamp) (more bool, err error) {
	var old []int64
	err = p.dispatching().read(p.ctx, func(w *work) error {
		return w.each(func(r rows) (bool, error) {
			var no int64
			var goes bool
			if err := r.Scan(&no, &goes); err != nil || !goes {
				return false, err
			}
			p.At.Event = no
			old = append(old, no)
			return true, nil
		}, selectForgettable, p.At.Event, before, p.Limit)
	})
	if err != nil || len(old) == 0 {
		return false, err
	}
	n := 0
	err = p.dispatching().write(p.ctx, func(w *work) error { return w.row(forgetObjects, old).Scan(&n) })
	p.Out.Objects += n
	return len(old) == p.Limit, err
}
