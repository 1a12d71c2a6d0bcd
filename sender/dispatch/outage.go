package dispatch

import (
	"context"
	"fmt"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/post"
)

// With the functions below the pump acts on networkWatch: it does not charge an outage of
// our own network to the endpoints, probes it by few attempts, and reports it.

// An operator is not notified of outages more often than this.
const networkNoticeEvery = 10 * time.Minute

// networkChange says that the network went down or came back.
type networkChange struct {
	down  bool
	since time.Time // when it went down
	at    time.Time
}

// observe takes in an attempt's evidence about our own network, and returns whether it
// failed at connecting.
func (p *pump) observe(a *attempt, r *Result) (failed bool) {
	if a.url == nil { // it panicked before it needed one
		return false
	}
	settings := a.Target.Settings
	failed, answered := reachability(&a.dial, r, settings != nil && settings.Proxy != "")
	p.d.network.observe(a.url.Host, a.Target.Subscriber, failed, answered, p.d.now())
	p.watchNetwork()
	return failed
}

// reachability returns an attempt's evidence about our own network: the attempt failed at
// connecting, or somebody answered, or neither. Neither is the case when a request was sent
// and no answer came.
//
// A proxy's failure is evidence about the proxy alone, and a closed tunnel is evidence
// about nobody. A host that a proxy tried in vain counts like a host that was dialled in
// vain: if nobody answers any more, through a proxy or without one, our side is cut off.
//
// The error of a single endpoint proves nothing: routers on the way to it can cause "no route
// to host", and a firewall of our own can have a rule about its address alone.
func reachability(d *post.Dialing, r *Result, proxied bool) (failedAtConnecting, answered bool) {
	switch {
	case r.ProxyFailed:
		return false, false
	case r.StatusCode != 0 || d.Connected.Load():
		return false, true
	case r.Class == sender.ClassDNS || r.Class == sender.ClassConnect:
		return true, false
	case r.Class == sender.ClassTimeout:
		return d.Begun.Load(), false
	case r.Class == sender.ClassTLS || r.Class == sender.ClassReset && !proxied || r.Class == sender.ClassProtocol:
		return false, true
	}
	return false, false
}

// watchNetwork acts on a change of the network's state.
func (p *pump) watchNetwork() {
	now := p.d.now()
	down := p.d.network.down(now)
	if down == p.slots.probing {
		return
	}
	if p.slots.probing = down; down {
		p.outage = p.d.network.since()
		p.returned(p.slots.takeQueues(true), time.Time{})
	}
	p.changes = append(p.changes, networkChange{down: down, since: p.outage, at: now})
	p.signal()
}

// excuse marks the attempts that our own network is to blame for.
func (p *pump) excuse(done []*attempt) {
	for _, a := range done {
		if a.failed && p.slots.probing {
			a.excused = true
		}
	}
}

// noteMachine has the operator notified that this machine is to blame for an attempt's failure,
// but not more often than of outages.
func (p *pump) noteMachine(a *attempt, now time.Time) {
	if now.Sub(p.d.machineNotified) < networkNoticeEvery {
		return
	}
	p.d.machineNotified = now
	p.notices = append(p.notices, sender.Notice{Kind: sender.NoticeNetwork, Subscriber: sender.Operator, Detail: fmt.Sprintf(
		"our own machine fails attempts, and not the endpoints, which are not charged with it: %s", a.result.Error)})
}

// reportNetwork reports the changes that watchNetwork found.
func (p *pump) reportNetwork(ctx context.Context) {
	p.mu.Lock()
	p.watchNetwork()
	changes := p.changes
	p.changes = nil
	for _, t := range changes {
		if t.down && t.at.Sub(p.d.networkNotified) >= networkNoticeEvery {
			p.d.networkNotified = t.at
			p.notices = append(p.notices, sender.Notice{Kind: sender.NoticeNetwork, Subscriber: sender.Operator, Detail: networkDetail(t.since)})
		}
	}
	p.mu.Unlock()
	for _, t := range changes {
		hook, name := p.d.cfg.Hooks.NetworkUp, "NetworkUp"
		if t.down {
			hook, name = p.d.cfg.Hooks.NetworkDown, "NetworkDown"
			p.d.cfg.Logger.ErrorContext(ctx, networkDetail(t.since))
		} else {
			p.d.cfg.Logger.InfoContext(ctx, "our own network is back", "down_for", t.at.Sub(t.since))
		}
		if hook != nil {
			p.d.guarded(ctx, name, func() { hook(ctx, t.since) })
		}
	}
}

func networkDetail(since time.Time) string {
	return fmt.Sprintf("our own network seems to be down since %s: hosts of several subscribers failed at connecting, and nobody answered; their failures are not counted until somebody does",
		since.UTC().Format(time.RFC3339))
}
