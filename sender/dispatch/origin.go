package dispatch

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/surehook/surehook/sender"
)

// sameOrigin tells whether two URLs have the scheme, host and port in common. An event with a
// URL of its own (sender.Event.URL) is posted with its subscription's headers and client
// certificate. These are for the subscription's origin alone, which can also have changed
// since the event was published.
func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

// port is the port that a URL leads to.
func port(u *url.URL) string {
	if u.Scheme == "https" {
		return cmp.Or(u.Port(), "443")
	}
	return cmp.Or(u.Port(), "80")
}

// refuse sets the result of an attempt for which nothing is sent, because its event's URL
// is of another origin than its subscription's. It returns what made returns.
func (p *pump) refuse(a *attempt) bool {
	local := p.d.now()
	ctx := p.d.attemptStart(p.wire, &a.Claimed)
	a.result = Result{
		Key: a.Key, Token: a.Token, Number: a.Number, StartedAt: a.timeAt(local), Class: sender.ClassBlocked,
		Error: "the event's own URL is not of the origin of its subscription's URL, whose headers and certificate are for that alone",
	}
	return p.made(ctx, a)
}
