package dispatch

import (
	"context"
	"fmt"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/post"
)

// An operator is not notified of the failures of one proxy more often than this.
const proxyNoticeEvery = networkNoticeEvery

// proxyNoticed remembers which failures of a proxy were reported.
type proxyNoticed struct {
	since   time.Time // when it began to fail, if that was reported; zero: it is well
	noticed time.Time // when a notice was made last
}

// reportProxies tells of the proxies that have begun to fail, or work again.
func (p *pump) reportProxies(ctx context.Context) {
	now := p.d.now()
	for _, x := range p.d.post.Proxies(now) {
		state := p.d.proxies[x.Name]
		switch {
		case x.Failing && state.since.IsZero():
			state.since = x.Since
			detail := proxyDetail(&x)
			if now.Sub(state.noticed) >= proxyNoticeEvery {
				state.noticed = now
				p.mu.Lock()
				p.notices = append(p.notices, sender.Notice{Kind: sender.NoticeProxy, Subscriber: sender.Operator, Detail: detail})
				p.mu.Unlock()
			}
			p.d.proxies[x.Name] = state
			p.d.cfg.Logger.ErrorContext(ctx, detail)
			p.turned(ctx, "ProxyDown", p.d.cfg.Hooks.ProxyDown, x.Name, x.Since)
		case !x.Failing && !state.since.IsZero():
			since := state.since
			state.since = time.Time{}
			p.d.proxies[x.Name] = state
			p.d.cfg.Logger.InfoContext(ctx, fmt.Sprintf("the proxy %q is not failing any more", x.Name), "failed_for", now.Sub(since))
			p.turned(ctx, "ProxyUp", p.d.cfg.Hooks.ProxyUp, x.Name, since)
		}
	}
}

// turned calls a hook about a proxy, if there is one.
func (p *pump) turned(ctx context.Context, name string, hook func(ctx context.Context, proxy string, since time.Time), proxy string, since time.Time) {
	if hook != nil {
		p.d.guarded(ctx, name, func() { hook(ctx, proxy, since) })
	}
}

func proxyDetail(x *post.ProxyState) string {
	meanwhile := "few attempts go through it"
	if x.OneHost {
		meanwhile = "attempts at other hosts go on, because it may forbid this host alone"
	}
	return fmt.Sprintf("the proxy %q has been failing since %s: %s. Its failures are not charged to the endpoints, and %s, until it connects one again",
		x.Name, x.Since.UTC().Format(time.RFC3339), x.Why, meanwhile)
}
