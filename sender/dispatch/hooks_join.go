package dispatch

import "github.com/surehook/surehook/internal/hooks"

// JoinHooks returns hooks that call all of the given ones, in their order: metrics and
// traces, say. Each AttemptStart gets the context of the one before. A panic in one does
// not keep the following ones from being called.
func JoinHooks(all ...Hooks) Hooks {
	var j Hooks
	for _, h := range all {
		j.AttemptStart = hooks.Start(j.AttemptStart, h.AttemptStart)
		j.AttemptEnd = hooks.Both2(j.AttemptEnd, h.AttemptEnd)
		j.PutOff = hooks.Both(j.PutOff, h.PutOff)
		j.Stepped = hooks.Both(j.Stepped, h.Stepped)
		j.TakenOver = hooks.Both(j.TakenOver, h.TakenOver)
		j.Recorded = hooks.Both(j.Recorded, h.Recorded)
		j.ReplayFinished = hooks.Both(j.ReplayFinished, h.ReplayFinished)
		j.Expanded = hooks.Both(j.Expanded, h.Expanded)
		j.Noticed = hooks.Both(j.Noticed, h.Noticed)
		j.NetworkDown = hooks.Both(j.NetworkDown, h.NetworkDown)
		j.NetworkUp = hooks.Both(j.NetworkUp, h.NetworkUp)
		j.ProxyDown = hooks.Both2(j.ProxyDown, h.ProxyDown)
		j.ProxyUp = hooks.Both2(j.ProxyUp, h.ProxyUp)
		j.Restored = hooks.Both(j.Restored, h.Restored)
		j.Pruned = hooks.Both(j.Pruned, h.Pruned)
	}
	return j
}
