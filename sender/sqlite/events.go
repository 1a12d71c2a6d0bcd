package sqlite

import (
	"database/sql"
	"slices"

	"github.com/surehook/surehook/sender"
)

const (
	eventColumns     = `seq, id, type, object_type, object_id, body`
	selectEvents     = `SELECT ` + eventColumns + ` FROM surehook_events WHERE seq IN (SELECT value FROM json_each(?))`
	selectEventRange = `SELECT ` + eventColumns + ` FROM surehook_events WHERE seq BETWEEN ? AND ?`
)

// event is what a claim says of one.
type event struct {
	info sender.EventInfo
	body []byte
}

// readEvents completes what was claimed. Deliveries of one event share its body.
func (b *batch) readEvents() error {
	var seqs []int64
	for i := range b.claims.Claimed {
		seqs = append(seqs, b.claims.Claimed[i].Key.Event)
	}
	for i := range b.claims.Interrupted {
		seqs = append(seqs, b.claims.Interrupted[i].Result.Key.Event)
	}
	if len(seqs) == 0 {
		return nil
	}
	slices.Sort(seqs)
	seqs = slices.Compact(seqs)
	events, err := b.events(seqs)
	if err != nil {
		return err
	}
	for i := range b.claims.Claimed {
		c := &b.claims.Claimed[i]
		ev := events[c.Key.Event]
		c.Event, c.Body = ev.info, ev.body
	}
	for i := range b.claims.Interrupted {
		r := &b.claims.Interrupted[i]
		r.Event = events[r.Result.Key.Event].info
	}
	return nil
}

// arena makes many small byte slices at the cost of few large ones.
type arena []byte

const arenaSize = 64 << 10

func (a *arena) clone(b []byte) []byte {
	if cap(*a)-len(*a) < len(b) {
		*a = make([]byte, 0, max(arenaSize, len(b)))
	}
	n := len(*a)
	*a = append(*a, b...)
	return (*a)[n:len(*a):len(*a)]
}

// events reads those of an ascending list.
func (b *batch) events(seqs []int64) (map[int64]event, error) {
	found := make(map[int64]event, len(seqs))
	names := map[string]string{} // types are few
	name := func(raw sql.RawBytes) string {
		s, ok := names[string(raw)]
		if !ok {
			s = string(raw)
			names[s] = s
		}
		return s
	}
	var bodies arena
	var eventType, objectType, body sql.RawBytes
	add := func(rows *sql.Rows) (bool, error) {
		var seq int64
		var ev event
		err := rows.Scan(&seq, &ev.info.ID, &eventType, &objectType, &ev.info.Object.ID, &body)
		ev.info.Type, ev.info.Object.Type = name(eventType), name(objectType)
		ev.body = bodies.clone(body)
		found[seq] = ev
		return true, err
	}
	// A range without many others in between is cheaper to read than a list.
	first, last := seqs[0], seqs[len(seqs)-1]
	if last-first < int64(len(seqs)+len(seqs)/4) {
		return found, b.each(add, selectEventRange, first, last)
	}
	return found, b.each(add, selectEvents, list(seqs))
}
