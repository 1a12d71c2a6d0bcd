package sqlite

import (
	"fmt"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/processes"
)

// A subscription is one process's while leases of it last that this has claimed: so its
// dispatcher alone says which first attempt about an object comes after which.

// freeHead is whether a process may claim of the head d, as far as that says: its leases
// may last longer. now and process are numbers of parameters.
func freeHead(now, process int) string {
	return fmt.Sprintf(`(d.leased = 0 OR d.owner IN (0, ?%d) OR d.leases_end <= ?%d)`, process, now)
}

// freeTurn is whether a turn t that is due is one of a process: not if all that is due of
// it is others'. If nothing is due, whoever comes moves it to where it belongs.
func freeTurn(now, process int) string {
	due := fmt.Sprintf(`FROM surehook_heads d WHERE d.lane = t.lane AND d.subscriber = t.subscriber AND d.next_due <= ?%d`, now)
	return `(EXISTS (SELECT 1 ` + due + ` AND ` + freeHead(now, process) + `) OR NOT EXISTS (SELECT 1 ` + due + `))`
}

// shareable makes a statement of a claim. also is what it asks if the work may be others'.
func shareable(text func(also string) string, also string) processes.Shareable {
	return processes.Shareable{Alone: text(""), Shared: text(also)}
}

// sharing is who claims, and whether others may have claimed before.
type sharing struct {
	process int64
	others  bool
}

func (s *Store) sharing(p *sender.ClaimParams) sharing {
	return sharing{p.By.Process, s.processes.Besides(p.By.Process)}
}

// args are the parameters of a shareable statement.
func (s sharing) args(own ...any) []any {
	if s.others {
		return append(own, s.process)
	}
	return own
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
