package rules

import (
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// Lost is the result of an attempt whose lease has ended without one: nobody knows whether
// the request arrived. A claim, or a Sweep, that finds such a lease calls Settle with this
// result in place of the one that nobody has recorded. So each attempt number has its
// record, and posts are never more than attempts (I3).
//
// token and claimed are of its lease. published is when its event was, or zero if its
// latency is not to be counted. chance is dispatch.ClaimParams.Chance; a Sweep has none.
func Lost(l dispatch.Live, token int64, claimed, published time.Time, chance float64) dispatch.Result {
	return dispatch.Result{
		Key: l.Key, Token: token, Number: l.Number, StartedAt: claimed, Published: published, Class: sender.ClassInterrupted,
		Error: "the process was lost; whether the request arrived is not known", Chance: chance,
	}
}
