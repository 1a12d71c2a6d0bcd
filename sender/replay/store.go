package replay

import (
	"context"
	"fmt"
	"time"

	"github.com/surehook/surehook/sender"
)

// Bounds are the bounds of a replay that is created. A zero field is no bound.
type Bounds struct {
	NotBefore  time.Time // when its events were published at the earliest
	Look       int       // about how many deliveries are looked at
	Unfinished int       // how many replays of its subscriber are running or paused at the most, with it
}

// Room returns an error that matches sender.ErrStatus if a subscriber has no room for another
// replay.
func (b Bounds) Room(unfinished int) error {
	if b.Unfinished == 0 || unfinished < b.Unfinished {
		return nil
	}
	return fmt.Errorf("%w: %d replays of the subscriber are running or paused: wait until one is finished, or cancel one", sender.ErrStatus, unfinished)
}

// Store keeps replays. Replays uses it. Filters have been validated by the
// caller.
//
// A replay has a set of members: the deliveries that its filter selects (see
// Filter.Selects) and that had its status when it was created, for as long
// as they keep it. One that is made live meanwhile, by whomever, has left the set,
// and does not come back when it ends again; so has one that is pruned. A redacted
// delivery is in no set, and leaves those that it was in.
type Store interface {
	// CreateReplay stores a replay, which is running, and fixes its set, in a
	// transaction that writes one row, however large the set is. It keeps NotBefore with the
	// replay: see dispatch.Store.StepReplays. It fills in ID unless it is given, and Status,
	// CreatedAt, Matched and More, and ignores what the replay has there. Matched
	// is counted on snapshots that may be read before the transaction: a delivery
	// that becomes delivered between the two can be a member without being counted.
	// It looks at about Look deliveries that may be of the set, or at all if Look is zero.
	// If there may be others, More is true.
	//
	// ErrNotFound: the filter names a subscription or a subscriber that never was,
	// or a subscription of another subscriber than it names;
	// a *RetentionError, and nothing is stored, if NotBefore is not zero and a
	// member's event was published before it. Where all of the set was not looked at, those
	// that were published before it are looked at apart. If there are more of these than
	// Look, and none that was looked at is a member, that is a *RetentionError without
	// Published;
	// the error of Bounds.Room, and nothing is stored, if the subscriber that the filter names
	// has Unfinished replays. If several are created at the same moment, more may be stored,
	// unless they are of delivered deliveries;
	// ErrExists, and nothing is stored, if the ID that is given is a replay's.
	CreateReplay(ctx context.Context, r Replay, b Bounds) (Replay, error)

	// PreviewReplay tells what the set of a replay would be. It changes nothing,
	// and may read in several transactions. If most is not zero it looks at about that many
	// deliveries that may be of the set, and within a subscription first at those that are
	// sent again first. Preview.More tells whether there may be others.
	PreviewReplay(ctx context.Context, f Filter, most int) (Preview, error)

	// Replay returns a replay, or ErrNotFound.
	Replay(ctx context.Context, id string) (Replay, error)

	// Replays lists replays, newest first. ErrNotFound: there is none with the id
	// q.After.
	Replays(ctx context.Context, q Query) ([]Replay, error)

	// SetReplayStatus makes a replay running, paused or cancelled, if
	// Status.Become lets it. Deliveries that were admitted go on. ErrNotFound; ErrStatus.
	SetReplayStatus(ctx context.Context, id string, to Status) (Replay, error)
}
