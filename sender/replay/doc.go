// Package replay sends many deliveries again: those that a [Filter] selects, at a rate that
// the receiver can bear, behind all that is fresh. A replay can be previewed, paused and
// cancelled, and goes on when a process is lost.
//
//	replays, err := replay.New(store, nil)
//	filter := replay.Filter{Status: sender.StatusDeadLettered, Subscription: id, Since: since}
//	preview, err := replays.Preview(ctx, filter)
//	r, err := replays.Create(ctx, replay.Request{Filter: filter, Rate: 50})
//
// A replay takes dead letters and superseded deliveries in the order in which they ended, and
// delivered ones in the order of their events. So a later version of an object may be sent before
// an earlier one, and receivers drop the earlier one as stale.
//
// Package dispatch admits the deliveries and attempts them. Package history sends one again.
package replay
