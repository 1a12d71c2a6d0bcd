package sqlite

import (
	"context"
	"database/sql"
	"slices"

	"github.com/surehook/surehook/sender/dispatch"
)

const (
	selectBodies   = `SELECT seq, body FROM surehook_events WHERE seq IN (SELECT value FROM json_each(?))`
	selectPayloads = `SELECT e.seq, ` + eventText + `, length(e.body), e.body FROM surehook_events e WHERE e.seq IN (SELECT value FROM json_each(?))`
)

// Payloads implements dispatch.Store.
func (s *Store) Payloads(ctx context.Context, events []int64) (map[int64]dispatch.Payload, error) {
	all := make(map[int64]dispatch.Payload, len(events))
	err := s.read(ctx, func(w *work) error {
		return w.each(func(rows *sql.Rows) (bool, error) {
			var seq, size int64
			var info string
			var p dispatch.Payload
			err := rows.Scan(&seq, &info, &size, &p.Body)
			p.Event = eventInfo(info)
			all[seq] = p
			return true, err
		}, selectPayloads, list(events))
	})
	if err != nil {
		return nil, fail("reading events", err)
	}
	return all, nil
}

// giveBodies reads the bodies that the claim has not read, now that the claim is committed
// and nobody waits for the write lock. A delivery whose event was redacted since is
// given back, which cancels it. A body that cannot be read stays out.
func (s *Store) giveBodies(ctx context.Context, out *dispatch.Claims) {
	events := withoutBody(out.Claimed)
	if len(events) == 0 {
		return
	}
	read := bodies{of: make(map[int64][]byte, len(events))}
	gone, err := s.readBodies(ctx, events, &read)
	if err != nil {
		gone = nil // the dispatcher asks for what is missing: see Payloads
	}
	var redacted []dispatch.Release
	kept := out.Claimed[:0]
	for _, c := range out.Claimed {
		if gone[c.Key.Event] {
			redacted = append(redacted, dispatch.Release{Key: c.Key, Token: c.Token})
			continue
		}
		if c.Body == nil {
			c.Body = read.of[c.Key.Event]
		}
		kept = append(kept, c)
	}
	out.Claimed = kept
	if len(redacted) > 0 {
		_ = s.Release(ctx, redacted) // if this fails, the first claim after the lease cancels it
	}
}

// withoutBody returns the events of the deliveries without a body, each once.
func withoutBody(claimed []dispatch.Claimed) (events []int64) {
	for i := range claimed {
		if claimed[i].Body == nil {
			events = append(events, claimed[i].Key.Event)
		}
	}
	slices.Sort(events)
	return slices.Compact(events)
}

// readBodies reads the bodies of events, and tells which are empty.
func (s *Store) readBodies(ctx context.Context, events []int64, read *bodies) (empty map[int64]bool, err error) {
	empty = map[int64]bool{}
	err = s.read(ctx, func(w *work) error {
		return w.each(func(rows *sql.Rows) (bool, error) {
			var seq int64
			var body sql.RawBytes
			err := rows.Scan(&seq, &body)
			if err == nil {
				empty[seq] = len(body) == 0
				read.keep(seq, body)
			}
			return true, err
		}, selectBodies, list(events))
	})
	return empty, err
}
