package postgres

import (
	"context"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/rules"
)

const (
	// selectPayloads reads events by their positions, and selectArrived by their numbers. If the
	// feed were joined, the planner would remember each event, with its body.
	selectPayloads = `SELECT u.position, ` + payloadColumns + ` FROM unnest($1::bigint[]) AS u(position)
		CROSS JOIN LATERAL (SELECT * FROM surehook_events WHERE no = (SELECT event FROM surehook_feed WHERE position = u.position) OFFSET 0) e`
	selectArrived  = `SELECT e.no, ` + payloadColumns + ` FROM surehook_events e WHERE e.no = ANY($1)`
	payloadColumns = `e.id, e.type, e.object_type, e.object_id, e.created_at, e.notice, e.url, coalesce(e.traceparent, ''), e.body`
)

// payloads are the events that were read, by their positions.
type payloads struct {
	at       map[int64]int
	list     []dispatch.Payload
	position map[int64]int64 // of events that are read by their numbers

	// The row that is being read: one for all, as there are many.
	no      int64
	created timestamp
	row     dispatch.Payload
	columns []any
}

func newPayloads(n int) *payloads {
	p := &payloads{at: make(map[int64]int, n), list: make([]dispatch.Payload, 0, n)}
	e := &p.row.Event
	p.columns = []any{&p.no, &e.ID, &e.Type, &e.Object.Type, &e.Object.ID, &p.created, &e.Notice, &e.URL, &e.Traceparent, &p.row.Body}
	return p
}

func (p *payloads) scan(r rows) error {
	p.row.Body = nil // the last one was handed on
	if err := r.Scan(p.columns...); err != nil {
		return err
	}
	p.row.Event.CreatedAt = p.created.time()
	position := p.no
	if p.position != nil {
		position = p.position[p.no]
	}
	p.add(position, &p.row)
	return nil
}

func (p *payloads) add(position int64, e *dispatch.Payload) {
	p.at[position] = len(p.list)
	p.list = append(p.list, *e)
}

// Payloads implements dispatch.Store.
func (c *core) Payloads(ctx context.Context, events []int64) (map[int64]dispatch.Payload, error) {
	var read *payloads
	err := c.dispatching().read(ctx, func(w *work) error {
		read = newPayloads(len(events))
		return w.each(func(r rows) (bool, error) { return true, read.scan(r) }, selectPayloads, events)
	})
	if err != nil {
		return nil, fail("reading events", err)
	}
	return read.byPosition(), nil
}

func (p *payloads) byPosition() map[int64]dispatch.Payload {
	all := make(map[int64]dispatch.Payload, len(p.at))
	for position, i := range p.at {
		all[position] = p.list[i]
	}
	return all
}

// readArrived has the events of new deliveries read once the transaction has committed,
// except those that are known already. It takes their numbers and positions. So nobody
// waits for the locks while bodies are on their way, however slowly.
func (b *batch) readArrived(numbers, positions []int64) {
	p := newPayloads(len(numbers))
	p.position = make(map[int64]int64, len(numbers))
	unread := make([]int64, 0, len(numbers))
	for i, no := range numbers {
		if e, ok := b.early.get(no); ok {
			p.add(positions[i], e)
			continue
		}
		p.position[no] = positions[i]
		unread = append(unread, no)
	}
	b.payloads = append(b.payloads, p)
	if len(unread) > 0 {
		b.committed(b.query(selectArrived, distinct(unread)).rows(p.scan))
	}
}

// readPayloads has events read by their positions, once the transaction has committed.
func (b *batch) readPayloads(positions []int64) {
	p := newPayloads(len(positions))
	b.payloads = append(b.payloads, p)
	b.committed(b.query(selectPayloads, distinct(positions)).rows(p.scan))
}

// readings are payloads that were read at several places.
type readings []*payloads

// get returns an event, if it was read.
func (r readings) get(position int64) (p *dispatch.Payload, read bool) {
	for _, some := range r {
		if i, ok := some.at[position]; ok {
			return &some.list[i], true
		}
	}
	return &dispatch.Payload{}, false
}

// giveBodies puts the events that were read after the commit into the claims. Claims of
// events that were redacted in the meantime are cancelled.
func (c *core) giveBodies(ctx context.Context, b *batch) {
	var redacted []dispatch.Claimed
	kept := b.out.Claimed[:0]
	for _, cl := range b.out.Claimed {
		p, there := b.payloads.get(cl.Key.Event)
		if there && len(p.Body) == 0 {
			redacted = append(redacted, cl)
			continue
		}
		cl.Event, cl.Body = p.Event, p.Body
		kept = append(kept, cl)
	}
	b.out.Claimed = kept
	if len(redacted) > 0 {
		// If this fails, they are found again when their leases end.
		_ = c.cancelClaimed(ctx, redacted)
	}
}

// cancelClaimed ends claims of redacted events, which nobody will attempt.
func (c *core) cancelClaimed(ctx context.Context, claims []dispatch.Claimed) error {
	key := func(cl dispatch.Claimed) dispatch.DeliveryKey { return cl.Key }
	return c.dispatching().batch(ctx, dispatch.Batch{}, func(b *batch) error {
		keys := column(claims, key)
		if err := b.lock(subscriptionsOf(keys)); err != nil {
			return err
		}
		if err := b.standIn(subscriptionsOf(keys)); err != nil {
			return err
		}
		return b.each(func(r rows) (bool, error) {
			var l live
			var class sender.Class
			err := r.Scan(&l.subscription, &l.event, &l.single, &class)
			h := b.heads.by[l.subscription]
			h.leased--
			h.lower(b.now) // its lease may have kept others back: see Settings.MaxInFlight
			status := rules.Cancelled(l.single)
			b.end(h, &l, status, class)
			b.leave(h, b.subs[l.subscription], &l, status)
			return true, err
		}, deleteRedacted, subscriptionsOf(keys), eventsOf(keys), column(claims, func(cl dispatch.Claimed) int64 { return cl.Token }))
	})
}

// deleteRedacted takes leases that are held under a token.
const deleteRedacted = `WITH q AS MATERIALIZED (
		SELECT x.at FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS u(subscription, event, token)
		CROSS JOIN LATERAL (SELECT ctid AS at FROM surehook_leases WHERE subscription = u.subscription AND event = u.event AND token = u.token OFFSET 0) x)
	DELETE FROM surehook_leases l USING q WHERE l.ctid = q.at RETURNING l.subscription, l.event, l.single,
		coalesce((SELECT a.class FROM surehook_attempts a WHERE a.event = l.event AND a.subscription = l.subscription ORDER BY a.number DESC LIMIT 1), '')`
