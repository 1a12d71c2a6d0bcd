package sqlite

import (
	"context"
	"database/sql"

	"github.com/surehook/surehook/sender"
)

const (
	selectBodies   = `SELECT seq, body FROM surehook_events WHERE seq IN (SELECT value FROM json_each(?))`
	selectPayloads = `SELECT ` + eventColumns + `, e.body FROM surehook_events e WHERE e.seq IN (SELECT value FROM json_each(?))`
)

// Payloads implements sender.DispatchStore.
func (s *Store) Payloads(ctx context.Context, events []int64) (map[int64]sender.Payload, error) {
	all := make(map[int64]sender.Payload, len(events))
	err := s.read(ctx, func(w *work) error {
		return w.each(func(rows *sql.Rows) (bool, error) {
			var seq, size int64
			var info string
			var p sender.Payload
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

// giveBodies reads the bodies of what was claimed, once for each event, when that is
// committed: nobody waits for the write lock meanwhile. What was redacted since is
// given back. What cannot be read stays without.
func (s *Store) giveBodies(ctx context.Context, out *sender.Claims) {
	if len(out.Claimed) == 0 {
		return
	}
	read := make(map[int64][]byte, len(out.Claimed))
	events := make([]int64, 0, len(out.Claimed))
	for _, c := range out.Claimed {
		if _, there := read[c.Key.Event]; !there {
			read[c.Key.Event] = nil
			events = append(events, c.Key.Event)
		}
	}
	var room bodies
	_ = s.read(ctx, func(w *work) error { // who has claimed asks for what is not there: see Payloads
		return w.each(func(rows *sql.Rows) (bool, error) {
			var seq int64
			var body sql.RawBytes
			err := rows.Scan(&seq, &body)
			if err == nil && len(body) > 0 {
				read[seq] = room.copyOf(body)
			} else if err == nil {
				read[seq] = []byte{}
			}
			return true, err
		}, selectBodies, list(events))
	})
	var redacted []sender.Release
	kept := out.Claimed[:0]
	for _, c := range out.Claimed {
		if c.Body = read[c.Key.Event]; c.Body != nil && len(c.Body) == 0 {
			redacted = append(redacted, sender.Release{Key: c.Key, Token: c.Token})
			continue
		}
		kept = append(kept, c)
	}
	out.Claimed = kept
	if len(redacted) > 0 {
		_ = s.Release(ctx, redacted) // the next claim cancels it; so it does if this fails, once the lease has ended
	}
}
