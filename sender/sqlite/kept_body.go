package sqlite

import (
	"context"
	"database/sql"
	"slices"

	"github.com/surehook/surehook/sender/dispatch"
)

const (
	keepBody = `INSERT INTO surehook_bodies (event, subscription, body) SELECT ?1, ?2, ?4
		WHERE EXISTS (SELECT 1 FROM surehook_leases WHERE subscription = ?2 AND event = ?1 AND token = ?3)
			AND EXISTS (SELECT 1 FROM surehook_events WHERE seq = ?1 AND length(body) > 0)
		ON CONFLICT (event, subscription) DO NOTHING`
	selectKept = `SELECT event, subscription, body FROM surehook_bodies
		WHERE (event, subscription) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))`
	removeKeptOf = `DELETE FROM surehook_bodies WHERE event = ? AND subscription = ?`
	removeKept   = `DELETE FROM surehook_bodies WHERE event IN (SELECT value FROM json_each(?))`
)

// KeepBodies implements dispatch.Store.
func (s *Store) KeepBodies(ctx context.Context, all []dispatch.KeptBody) (kept map[dispatch.DeliveryKey][]byte, err error) {
	made := func(k dispatch.KeptBody) bool { return k.Body != nil }
	do := s.read
	if slices.ContainsFunc(all, made) {
		do = s.write
	}
	err = do(ctx, func(w *work) error {
		keys := make([]dispatch.DeliveryKey, len(all))
		for i, k := range all {
			keys[i] = k.Key
			if made(k) {
				if err := w.execs(keepBody, k.Key.Event, k.Key.Subscription, k.Token, k.Body); err != nil {
					return err
				}
			}
		}
		kept = map[dispatch.DeliveryKey][]byte{}
		return w.each(func(rows *sql.Rows) (bool, error) {
			var k dispatch.DeliveryKey
			var body []byte
			err := rows.Scan(&k.Event, &k.Subscription, &body)
			kept[k] = body
			return true, err
		}, selectKept, keyList(keys))
	})
	if err != nil {
		return nil, fail("keeping bodies", err)
	}
	return kept, nil
}
