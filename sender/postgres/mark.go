package postgres

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// snapshotMark tells which events were committed before a subscription changed: see the
// comments in the migrations.
type snapshotMark struct {
	snapshot snapshot
	xid      uint64
	seq      int64
}

// precedes tells whether an event came after the mark.
func (m *snapshotMark) precedes(ev *unexpanded) bool {
	// An event with a higher seq was committed later, whatever the id of its transaction:
	// after a dump was restored that can be one of another cluster.
	return ev.seq > m.seq || ev.xid != m.xid && !m.snapshot.sees(ev.xid)
}

// snapshot is a pg_snapshot (PostgreSQL, section 9.27.7).
type snapshot struct {
	xmin, xmax uint64
	running    []uint64
}

// sees tells whether a committed transaction is visible in the snapshot.
func (s *snapshot) sees(xid uint64) bool {
	return xid < s.xmin || xid < s.xmax && !slices.Contains(s.running, xid)
}

// parseSnapshot reads xmin:xmax:xip,xip,…
func parseSnapshot(text string) (s snapshot, err error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return s, fmt.Errorf("%q is not a snapshot", text)
	}
	if s.xmin, err = parseXID(parts[0]); err != nil {
		return s, err
	}
	if s.xmax, err = parseXID(parts[1]); err != nil || parts[2] == "" {
		return s, err
	}
	for _, part := range strings.Split(parts[2], ",") {
		xid, err := parseXID(part)
		if err != nil {
			return s, err
		}
		s.running = append(s.running, xid)
	}
	return s, nil
}

// openIn returns the transactions that were open in a snapshot.
func openIn(text string) ([]uint64, error) {
	s, err := parseSnapshot(text)
	return s.running, err
}

func parseXID(text string) (uint64, error) {
	xid, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a transaction id", text)
	}
	return xid, nil
}

// parseSnapshotMark reads a mark. It returns nil if the columns are NULL.
func parseSnapshotMark(snapshot, xid *string, seq *int64) (*snapshotMark, error) {
	if snapshot == nil || xid == nil || seq == nil {
		return nil, nil
	}
	m := &snapshotMark{seq: *seq}
	var err error
	if m.snapshot, err = parseSnapshot(*snapshot); err == nil {
		m.xid, err = parseXID(*xid)
	}
	return m, err
}
