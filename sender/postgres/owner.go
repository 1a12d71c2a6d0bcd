package postgres

import "github.com/surehook/surehook/sender/internal/processes"

// While leases of a subscription last, the process that claimed them holds it. So one
// dispatcher alone decides which first attempt about an object comes after which.

// freeHead is the condition under which a process may claim deliveries of a head, as far as
// the head alone says: its leases may last longer than leases_end.
func freeHead(h, now, process string) string {
	return `(` + h + `.leased = 0 OR ` + h + `.owner IN (0, ` + process + `) OR coalesce(` + h + `.leases_end <= ` + now + `, true))`
}

// freeTurn is the condition under which a due turn t concerns a process: not if other
// processes hold all that is due of it. If nothing is due, any process moves the turn to
// where it belongs.
func freeTurn(now, process string) string {
	due := `(SELECT 1 FROM surehook_heads f WHERE f.lane = t.lane AND f.subscriber = t.subscriber AND f.next_due < 'infinity' AND f.next_due <= ` + now + ` AND f.next_due >= t.low`
	const first = ` ORDER BY f.next_due LIMIT 1)`
	return `(` + due + ` AND ` + freeHead("f", now, process) + first + ` IS NOT NULL OR ` + due + first + ` IS NULL)`
}

func (b *batch) of(s *processes.Shareable) string { return s.Of(b.shared) }

// others tells whether another process holds deliveries of a subscription.
func (b *batch) others(h *head) bool {
	if h.leased == 0 || h.owner == 0 || h.owner == b.Claim.By.Process {
		return false
	}
	return h.leasesEnd > b.now || b.lasting[h.subscription]
}

// findLasting finds out, for subscriptions that other processes hold and that have a lease
// that has perhaps ended, whether all their leases have.
func (b *batch) findLasting(all []*head) error {
	var unsure []int64
	for _, h := range all {
		if h.leased > 0 && h.owner != 0 && h.owner != b.Claim.By.Process && h.leasesEnd <= b.now {
			unsure = append(unsure, h.subscription)
		}
	}
	if len(unsure) == 0 {
		return nil
	}
	return b.each(func(r rows) (bool, error) {
		var no int64
		var first, last timestamp
		err := r.Scan(&no, &first, &last)
		if err == nil {
			b.heads.by[no].leasesEnd, b.lasting[no] = first, last > b.now
		}
		return true, err
	}, selectLeasesEnd, unsure)
}
