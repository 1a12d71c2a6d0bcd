package postgres

const (
	// The row of a resume that skipped something can go when nothing can come any more that
	// was there before the resume. It could come from the outbox, which selectSweepable has
	// looked at, or from a lease. What an expansion that had not seen the resume has made is
	// there by then, and cancelUnseen has ended it.
	selectFreeSubscriptions = `SELECT no FROM surehook_subscriptions WHERE no = ANY($1) ORDER BY no FOR UPDATE SKIP LOCKED`
	deleteSkipped           = `DELETE FROM surehook_left l USING unnest($1::bigint[], $2::bigint[]) AS u(subscription, epoch)
		WHERE l.subscription = u.subscription AND l.epoch = u.epoch AND l.subscription = ANY($3)
			AND NOT EXISTS (SELECT 1 FROM surehook_pending x WHERE x.subscription = l.subscription AND x.event <= l.event)
			AND NOT EXISTS (SELECT 1 FROM surehook_waiting x WHERE x.subscription = l.subscription AND x.event <= l.event AND x.epoch < l.epoch)
			AND NOT EXISTS (SELECT 1 FROM surehook_lines x WHERE x.subscription = l.subscription AND x.event <= l.event AND x.epoch < l.epoch AND x.place < 3 AND NOT ` + isOut + `)
			AND NOT EXISTS (SELECT 1 FROM surehook_leases x WHERE x.subscription = l.subscription AND x.epoch < l.epoch)
		RETURNING l.subscription`
	lowerSkipped = `UPDATE surehook_subscriptions s SET version = version + 1,
			left_to = coalesce((SELECT max(l.event) FROM surehook_left l WHERE l.subscription = s.no), -1)
		WHERE s.no = ANY($1)`

	// clearSnapshotMarks removes marks that exclude nothing any more. Everything before a
	// mark has a seq that is not higher, and no such row is in the outbox. (An event that was
	// not committed when the mark was set is not before it.) A mark names transactions by
	// their ids, and a database that is restored from a dump counts them anew. So the fewer
	// marks a dump has, the better.
	clearSnapshotMarks = `UPDATE surehook_patterns SET since_snapshot = NULL, since_xid = NULL, since_seq = NULL
		WHERE ctid = ANY(ARRAY(SELECT ctid FROM surehook_patterns WHERE since_seq IS NOT NULL AND since_seq < $1
			ORDER BY since_seq LIMIT 500 FOR UPDATE SKIP LOCKED))`
)

// clearSkipped removes the rows of resumes that are over.
func (b *batch) clearSkipped(f *sweepable) error {
	var locked []int64
	for _, no := range f.past {
		if b.heads.by[no] != nil {
			locked = append(locked, no)
		}
	}
	if len(locked) == 0 {
		return nil
	}
	free, err := b.numbers(selectFreeSubscriptions, distinct(locked))
	if err != nil || len(free) == 0 {
		return err
	}
	cleared, err := b.numbers(deleteSkipped, f.past, f.epochs, free)
	if err != nil || len(cleared) == 0 {
		return err
	}
	return b.execs(lowerSkipped, distinct(cleared))
}
