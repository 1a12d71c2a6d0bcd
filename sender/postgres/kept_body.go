package postgres

import (
	"cmp"
	"context"
	"slices"

	"github.com/surehook/surehook/sender/dispatch"
)

const (
	// keepBodies locks the leases, so that nobody claims the deliveries again, and no
	// redaction marks them, until the bodies are committed.
	keepBodies = `WITH held AS MATERIALIZED (
			SELECT u.event, u.subscription, u.body FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[]) AS u(event, subscription, token, body)
			CROSS JOIN LATERAL (SELECT 1 FROM surehook_leases WHERE subscription = u.subscription AND event = u.event AND token = u.token AND NOT redacted FOR SHARE) l)
		INSERT INTO surehook_bodies (event, subscription, body) SELECT event, subscription, body FROM held ON CONFLICT DO NOTHING`
	selectKept = `SELECT b.event, b.subscription, b.body FROM unnest($1::bigint[], $2::bigint[]) AS u(event, subscription)
		CROSS JOIN LATERAL (SELECT * FROM surehook_bodies WHERE event = u.event AND subscription = u.subscription OFFSET 0) b`
	selectKeptBody = `SELECT body FROM surehook_bodies WHERE event = $1 AND subscription = $2`
	removeKept     = `DELETE FROM surehook_bodies WHERE event = ANY($1)`
	removeKeptOf   = `DELETE FROM surehook_bodies b USING unnest($1::bigint[], $2::bigint[]) AS u(event, subscription) WHERE b.event = u.event AND b.subscription = u.subscription`
)

// KeepBodies implements dispatch.Store.
func (c *core) KeepBodies(ctx context.Context, all []dispatch.KeptBody) (kept map[dispatch.DeliveryKey][]byte, err error) {
	key := func(k dispatch.KeptBody) dispatch.DeliveryKey { return k.Key }
	made := slices.DeleteFunc(slices.Clone(all), func(k dispatch.KeptBody) bool { return k.Body == nil })
	slices.SortFunc(made, func(x, y dispatch.KeptBody) int { // all lock in one order
		return cmp.Or(cmp.Compare(x.Key.Subscription, y.Key.Subscription), cmp.Compare(x.Key.Event, y.Key.Event))
	})
	do := c.dispatching().read
	if len(made) > 0 {
		do = c.dispatching().write
	}
	err = do(ctx, func(w *work) error {
		if len(made) > 0 {
			keys := column(made, key)
			err := w.execs(keepBodies, eventsOf(keys), subscriptionsOf(keys), column(made, func(k dispatch.KeptBody) int64 { return k.Token }),
				column(made, func(k dispatch.KeptBody) []byte { return k.Body }))
			if err != nil {
				return err
			}
		}
		keys := column(all, key)
		kept = map[dispatch.DeliveryKey][]byte{}
		return w.each(func(r rows) (bool, error) {
			var k dispatch.DeliveryKey
			var body []byte
			err := r.Scan(&k.Event, &k.Subscription, &body)
			kept[k] = body
			return true, err
		}, selectKept, eventsOf(keys), subscriptionsOf(keys))
	})
	if err != nil {
		return nil, fail("keeping bodies", err)
	}
	return kept, nil
}
