package sender

import (
	"cmp"
	"fmt"
	"time"

	"github.com/surehook/surehook/dedup"
)

// Retention says how long records are kept, and how far back events may be sent again.
// Zero fields mean the defaults. It is one contract with the receivers. Give the Registry,
// the Dispatcher and all others the same. Tell the receivers Reach and the policy's
// horizon, which are Reach and Horizon of package receiver's Config. They check both
// against how long they remember: Retention of that Config, and Receivers here.
//
// This must hold: the policy's horizon ≤ Reach; Reach and the horizon together ≤ Receivers
// less dedup.RetentionMargin, because what is sent again at the end of Reach is tried for
// the horizon; Reach ≤ Delivered ≤ Events; and Reach ≤ DeadLetters. The horizon is the
// longest that a delivery can have: the policy's, or PolicyBounds.MaxHorizon.
type Retention struct {
	// Reach is how far back one redelivers, replays and resumes without force: events that
	// were published before are refused with a *RetentionError. Neither can versions of an
	// object go on without force after a dead letter has held them back for that long: see
	// Settings.HoldDead. The default is 28 days.
	Reach time.Duration

	// Receivers is how long the receivers remember what they have applied. The
	// default is 32 days, as that of package dedup.
	Receivers time.Duration

	// Delivered is how long the records of delivered and cancelled deliveries are
	// kept, with their attempts, once they have ended: since their last attempts, or
	// since they were cancelled. The default is 30 days.
	Delivered time.Duration

	// Events is how long events are kept, for those who pull them, and with them the
	// idempotency keys of their publishing. An event stays for longer while one of its
	// deliveries is live, held or dead-lettered, or has a record. A subscription that was
	// deleted is known for as long as Events says, once there is no record of it any more. So
	// is a replay, once it is finished or cancelled. The default is 30 days.
	Events time.Duration

	// Objects is how long the last version of an object is remembered once its last event
	// is pruned and nothing else was published about it: at least a day. Zero: for ever.
	//
	// A version that is assigned is always above all that the object ever had. This holds for
	// forgotten objects too, because once one is forgotten, the next version of every object
	// is above all that it had. So new objects begin higher than 1, and versions have gaps. A
	// version that a caller gives is compared with nothing once its object is forgotten.
	// Objects whose last events were pruned before this was set, and those with versions
	// above 2^52, stay. On SQLite an object stays, too, while deliveries about it are in an
	// order of objects, or of the latest, and have not ended.
	//
	// No transaction that publishes at REPEATABLE READ or SERIALIZABLE may be open for so
	// long: it would not see that versions go on higher.
	Objects time.Duration

	// DeadLetters is how long dead letters are kept, with their events' bodies and
	// their attempts. The default is 365 days; negative: for ever.
	DeadLetters time.Duration

	// Notices is how long notices are kept once somebody has acknowledged them. Others
	// stay until then. The default is 90 days.
	Notices time.Duration

	// Rollups is how long the figures per minute are kept. The default is 90 days.
	Rollups time.Duration

	// SubscriptionRollups is how long the figures per subscription and hour are kept. The
	// default is 35 days.
	SubscriptionRollups time.Duration
}

const day = 24 * time.Hour

// WithDefaults returns the retention with its zero fields set to their defaults.
func (r Retention) WithDefaults() Retention {
	r.Reach = cmp.Or(r.Reach, dedup.DefaultReach)
	r.Receivers = cmp.Or(r.Receivers, dedup.DefaultRetention)
	r.Delivered = cmp.Or(r.Delivered, 30*day)
	r.Events = cmp.Or(r.Events, 30*day)
	r.DeadLetters = cmp.Or(r.DeadLetters, 365*day)
	r.Notices = cmp.Or(r.Notices, 90*day)
	r.Rollups = cmp.Or(r.Rollups, 90*day)
	r.SubscriptionRollups = cmp.Or(r.SubscriptionRollups, 35*day)
	return r
}

// Problems returns all that is wrong with a retention whose defaults are set, for a policy
// that tries until horizon after the first attempt. A horizon of 0 is not known: then the
// Dispatcher alone finds out that the receivers would forget an event during its retries.
func (r Retention) Problems(horizon time.Duration) []error {
	var errs []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf("sender: Retention."+format, args...))
		}
	}
	for _, f := range []struct {
		name string
		is   time.Duration
	}{{"Reach", r.Reach}, {"Receivers", r.Receivers}, {"Delivered", r.Delivered}, {"Events", r.Events}, {"Notices", r.Notices}, {"Rollups", r.Rollups}, {"SubscriptionRollups", r.SubscriptionRollups}} {
		bad(f.is < 0, "%s is %v: it must be positive, or zero for the default", f.name, f.is)
	}
	if len(errs) > 0 {
		return errs
	}
	bad(r.Reach < horizon, "Reach is %v: it must be at least the horizon of the retries, %v, or what they have given up could not be sent again", r.Reach, horizon)
	if err := dedup.CheckRetention(r.Receivers, r.Reach, horizon); err != nil {
		errs = append(errs, fmt.Errorf("sender: Retention.Receivers for Retention.Reach: %w", err))
	}
	bad(r.Delivered < r.Reach, "Delivered is %v: it must be at least Reach, %v, or the records of what may be redelivered would be gone", r.Delivered, r.Reach)
	bad(r.Events < r.Delivered, "Events is %v: it must be at least Delivered, %v, since a record keeps its event", r.Events, r.Delivered)
	bad(r.DeadLetters >= 0 && r.DeadLetters < r.Reach, "DeadLetters is %v: it must be at least Reach, %v, or negative to keep them for ever", r.DeadLetters, r.Reach)
	bad(r.Objects != 0 && r.Objects < day, "Objects is %v: it must be at least %v, or zero to remember them for ever", r.Objects, day)
	return errs
}

// NotBefore is the earliest time of publishing of an event that may be sent again without
// force.
func (r Retention) NotBefore(now time.Time) time.Time { return now.Add(-r.Reach) }
