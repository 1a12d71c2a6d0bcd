package sqlite

import (
	"fmt"

	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/processes"
)

// While leases of a subscription last, it belongs to the process that has claimed them.
// So a single dispatcher decides the order of the first attempts about an object.

// freeHead is the condition that a process may claim from the head d, as far as the head
// tells. Other leases may last longer than its leases_end. now and process are numbers of
// parameters.
func freeHead(now, process int) string {
	return fmt.Sprintf(`(d.leased = 0 OR d.owner IN (0, ?%d) OR d.leases_end <= ?%d)`, process, now)
}

// freeTurn is the condition that a process may have a due turn t: others do not hold all
// that is due of it. If nothing of it is due, the first process that comes moves it to
// where it belongs.
func freeTurn(now, process int) string {
	due := fmt.Sprintf(`FROM surehook_heads d WHERE d.lane = t.lane AND d.subscriber = t.subscriber AND d.next_due <= ?%d`, now)
	return `(EXISTS (SELECT 1 ` + due + ` AND ` + freeHead(now, process) + `) OR NOT EXISTS (SELECT 1 ` + due + `))`
}

// shareable makes a statement of a claim in its two forms. also is the condition that it
// has if other processes may hold work.
func shareable(text func(also string) string, also string) processes.Shareable {
	return processes.Shareable{Alone: text(""), Shared: text(also)}
}

// sharing says which process claims, and whether others may hold work.
type sharing struct {
	process int64
	others  bool
}

func (s *Store) sharing(p *dispatch.ClaimParams) sharing {
	return sharing{p.By.Process, s.processes.Besides(p.By.Process)}
}

// args returns the parameters of a shareable statement.
func (s sharing) args(params ...any) []any {
	if s.others {
		return append(params, s.process)
	}
	return params
}

const selectLeasesEnd = `SELECT coalesce(min(until), 0), coalesce(max(until), 0) FROM surehook_leases WHERE subscription = ?`

// others tells whether another process holds deliveries of a subscription.
func (b *batch) others(h *head) (bool, error) {
	switch {
	case h.leased == 0 || h.owner == 0 || h.owner == b.Claim.By.Process:
		return false, nil
	case h.leasesEnd > b.now:
		return true, nil
	}
	var last int64
	err := b.row(selectLeasesEnd, h.subscription).Scan(&h.leasesEnd, &last)
	return last > b.now, err
}
