package post

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"
)

// RoundTrip implements http.RoundTripper.
func (o *dedicatedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return o.through(r, o.client)
}

// through makes an attempt by the transport's client, and finds out whether the proxy is to
// blame if it fails.
func (o *dedicatedTransport) through(r *http.Request, by http.RoundTripper) (*http.Response, error) {
	if o.proxy == nil {
		return by.RoundTrip(r)
	}
	silent := o.proxy.doubt(r.Context())
	answer, err := by.RoundTrip(r)
	if err == nil {
		o.proxy.heard.Add(1)
		o.proxy.worked() // also through a tunnel that was made long ago
	}
	return answer, o.proxy.judge(r, err, silent())
}

// doubt begins to watch an attempt. If half of its time passes, the proxy is asked whether
// it is alive. If nothing comes back, the target may swallow what is sent to it, or the
// proxy may hang. The caller calls silent at the attempt's end. It reports whether the
// proxy has given no sign of life since then.
func (p *proxy) doubt(ctx context.Context) (silent func() bool) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return func() bool { return false }
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	var heard uint64
	asked := make(chan struct{})
	timer := time.AfterFunc(time.Until(deadline)/2, func() {
		defer close(asked)
		heard = p.heard.Load()
		select {
		case p.asking <- struct{}{}:
			if p.heard.Load() == heard { // nobody else has heard of it while this one waited
				p.question(ctx)
			}
			<-p.asking
		case <-ctx.Done():
		}
	})
	return func() bool {
		defer cancel()
		if timer.Stop() {
			return false
		}
		cancel()
		<-asked
		return p.heard.Load() == heard
	}
}

// question asks the proxy something that it must answer itself, at once (RFC 9110,
// section 7.6.2). Any answer shows that it is alive, a refusal too. It is made like a
// CONNECT, with its credentials: a proxy that hangs while it checks them hangs here too.
func (p *proxy) question(ctx context.Context) {
	conn, failure := p.open(ctx)
	if failure != nil {
		return
	}
	defer conn.Close()
	header := p.header.Clone()
	header.Set("Max-Forwards", "0")
	header.Set("Connection", "close")
	_, _, _ = p.ask(ctx, conn, &http.Request{Method: http.MethodOptions, URL: &url.URL{Opaque: "*"}, Host: p.address, Header: header}) //nolint:bodyclose // its connection is closed
}

// judge finds out whether the proxy is to blame for an attempt's error, and remembers
// it if so.
func (p *proxy) judge(r *http.Request, err error, silent bool) error {
	ctx := r.Context()
	var failure *proxyError
	var dns *net.DNSError
	deadline, _ := ctx.Deadline()
	_ = errors.As(err, &failure)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && time.Now().Before(deadline): // it was given up, which says nothing of the proxy
		if failure != nil {
			return &proxyError{text: failure.text, err: failure.err}
		}
		return err
	case silent && timedOut(err) && (failure != nil || !errors.As(err, &dns)): // a name is looked up without the proxy
		if failure == nil || !failure.failed {
			failure = &proxyError{text: "the sender's proxy does not answer", failed: true, err: err}
		}
	}
	if failure == nil {
		return err
	}
	if failure.failed {
		host := ""
		if failure.next {
			host = r.URL.Host
		}
		p.failed(failure.text, host)
	}
	return failure
}

func timedOut(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
