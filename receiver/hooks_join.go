package receiver

import "github.com/surehook/surehook/internal/hooks"

// JoinHooks returns hooks that call all of the given ones, in their order: metrics and
// traces, say. Each Start gets the context of the one before. A panic in one does not keep
// the following ones from being called.
func JoinHooks(all ...Hooks) Hooks {
	var j Hooks
	for _, h := range all {
		j.Start = hooks.Start(j.Start, h.Start)
		j.Verified = hooks.Both(j.Verified, h.Verified)
		j.Applied = hooks.Both(j.Applied, h.Applied)
		j.Duplicate = hooks.Both(j.Duplicate, h.Duplicate)
		j.Stale = hooks.Both(j.Stale, h.Stale)
		j.DeadLettered = hooks.Both2(j.DeadLettered, h.DeadLettered)
		j.Reapplied = hooks.Both(j.Reapplied, h.Reapplied)
		j.Ignored = hooks.Both(j.Ignored, h.Ignored)
		j.Recorded = hooks.Both(j.Recorded, h.Recorded)
		j.Challenged = hooks.Both(j.Challenged, h.Challenged)
		j.Rejected = hooks.Both(j.Rejected, h.Rejected)
		j.Failed = hooks.Both2(j.Failed, h.Failed)
	}
	return j
}
