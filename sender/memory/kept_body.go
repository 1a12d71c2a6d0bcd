package memory

import (
	"bytes"
	"context"

	"github.com/surehook/surehook/sender/dispatch"
)

// KeepBodies implements dispatch.Store.
func (s *Store) KeepBodies(ctx context.Context, all []dispatch.KeptBody) (kept map[dispatch.DeliveryKey][]byte, err error) {
	kept = map[dispatch.DeliveryKey][]byte{}
	err = s.inTx(ctx, func(tx *Tx) error {
		for _, k := range all {
			d := s.deliveries[k.Key]
			if d == nil {
				continue
			}
			if d.kept == nil && k.Body != nil && d.holds(k.Token) && !d.event.redacted {
				set(tx, &d.kept, bytes.Clone(k.Body))
			}
			if d.kept != nil {
				kept[k.Key] = bytes.Clone(d.kept)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return kept, nil
}
