package sender

import "context"

// Presence is what a process has said last to show that it lives.
type Presence struct {
	Process int64 // its number: random, and its own
	Beat    int64 // rises each time, from 1
}

// PresenceStore lets processes take over what one of them has claimed that is gone. A
// claim is made by a process (ClaimParams.By), which says that it lives for as long as it
// holds leases. Who is gone is judged by the dispatchers that watch, by clocks of their
// own: a store compares no times for it.
type PresenceStore interface {
	// Beat stores that a process lives, whether it was known or not, and returns those
	// that were known before, itself included. It must wait for nothing that a step
	// waits for, where the database has several writers.
	Beat(ctx context.Context, p Presence) ([]Presence, error)

	// Present returns the processes that are known. It only reads.
	Present(ctx context.Context) ([]Presence, error)

	// TakeOver ends the leases of a process: each one that has not ended by itself ends
	// now, so its delivery is due, and the next claim finds the attempt interrupted.
	// Results count until then. Others' leases stay as they are. Then the process is
	// known no more. It returns how many leases it has ended.
	//
	// If the process has said since that it lives, nothing is changed, or nothing more:
	// it works in short transactions, and each holds only if the beat is still the one
	// given. One that is not known is gone already.
	TakeOver(ctx context.Context, p Presence) (ended int, err error)

	// Leave has a process known no more that holds no leases, if its beat is still the
	// one given.
	Leave(ctx context.Context, p Presence) error
}
