package sender

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/sender/internal/http1"
	"github.com/surehook/surehook/signing"
)

const (
	// maxAnswer is how much of an answer's body is read. What is longer is cut
	// off, and its connection closed.
	maxAnswer = 16 << 10
	// maxSnippet is how much of a failed attempt's answer is kept.
	maxSnippet = 1 << 10
)

// poster makes attempts: one POST each.
type poster struct {
	transports *transports
	timeout    time.Duration
	schemes    []signing.Scheme
	userAgent  []string
	now        func() time.Time // the local clock: how long attempts take
}

var jsonType = []string{"application/json"}

// posting is an attempt under way: what is sent, and what is known of it before
// its answer.
type posting struct {
	poster    *poster
	url       *url.URL
	header    http.Header
	body      []byte
	transport http.RoundTripper
	own       *ownTransport
	timeout   time.Duration
	began     time.Time // on the local clock
	result    Result
}

// prepare makes the request of an attempt, at the database's time now. It returns
// an error if the request cannot be signed, or not be sent as the subscription's
// settings ask. Otherwise what it returns is to be sent, or ended.
func (p *poster) prepare(c *Claimed, u *url.URL, keys *signing.Keyring, now time.Time) (x posting, err error) {
	if s := c.Target.Settings; s != nil && s.Unreadable() != nil {
		return x, fmt.Errorf("%w (subscription %q)", s.Unreadable(), c.Target.Subscription)
	}
	x = posting{poster: p, url: u, header: make(http.Header, 8), body: c.Body, timeout: p.timeout, result: Result{Key: c.Key, Token: c.Token, Number: c.Number, StartedAt: now}}
	if x.transport, x.own, err = p.transports.of(c.Target, u); err != nil {
		return x, err
	}
	if c.Spared {
		x.transport = onNewConnection(x.transport)
	}
	header := x.header
	if s := c.Target.Settings; s != nil {
		if err := addHeaders(header, p.transports.keys, c.Target.Subscription, s.Headers); err != nil {
			x.end()
			return x, err
		}
		if s.Timeout > 0 {
			x.timeout = min(x.timeout, s.Timeout)
		}
	}
	header["Content-Type"] = jsonType
	header["User-Agent"] = p.userAgent
	header["Webhook-Attempt"] = []string{strconv.Itoa(c.Number)}
	if err := signing.Sign(header, p.schemes, c.Event.ID, now, c.Body, keys); err != nil {
		x.end()
		return x, err
	}
	x.began = p.now()
	return x, nil
}

// request returns what is sent. GetBody stays nil: with it net/http's transports could
// send the request twice.
func (x *posting) request(ctx context.Context) *http.Request {
	r := http.Request{
		Method: http.MethodPost, URL: x.url, Host: x.url.Host, Header: x.header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(bytes.NewReader(x.body)), ContentLength: int64(len(x.body)),
	}
	return r.WithContext(ctx)
}

// send makes the POST. If take is not nil it reads the answer's body, and its error
// is the attempt's.
func (x *posting) send(ctx context.Context, take func(body io.Reader) error) Result {
	defer x.end()
	if x.poster.transports.unguarded != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, x.timeout)
		defer cancel()
	} else {
		ctx = until{ctx, time.Now().Add(x.timeout)}
	}
	answer, err := x.transport.RoundTrip(x.request(ctx))
	return x.conclude(ctx, answer, err, take)
}

// end lets go of the transport.
func (x *posting) end() { x.poster.transports.release(x.own) }

// conclude says what came of an attempt, from what RoundTrip returned. take is as for
// send.
func (x *posting) conclude(ctx context.Context, answer *http.Response, err error, take func(body io.Reader) error) Result {
	r := x.result
	second := spokeHTTP2(answer, err)
	if err != nil {
		r.Class, r.Error = classify(ctx, err)
		r.ProxyFailed = byProxy(err)
		r.ClosedIdle = errors.Is(err, http1.ErrClosedIdle)
		r.Error = naming(r.Error, second)
		r.Duration = x.poster.now().Sub(x.began)
		return r
	}
	defer answer.Body.Close()
	r.StatusCode = answer.StatusCode
	switch {
	case answer.StatusCode == http.StatusSwitchingProtocols: // what follows is no body, and may never end
	case take != nil:
		err = take(answer.Body)
	default:
		err = read(answer, &r)
	}
	r.Duration = x.poster.now().Sub(x.began)
	r.RetryAfter, _ = backoff.ParseRetryAfter(answer.Header.Get("Retry-After"), r.StartedAt.Add(r.Duration))
	switch {
	case answer.StatusCode >= 300 && answer.StatusCode < 400:
		r.Class, r.Error = ClassRedirect, fmt.Sprintf("answered %d: redirects are not followed", answer.StatusCode)
	case answer.StatusCode < 200 || answer.StatusCode >= 400:
		r.Class, r.Error = ClassStatus, fmt.Sprintf("answered %d", answer.StatusCode)
	case err != nil:
		r.Class, r.Error = classify(ctx, err)
	}
	r.Error = naming(r.Error, second)
	return r
}

// naming adds the protocol to an error's text, if it is the unusual one.
func naming(text string, second bool) string {
	if text != "" && second {
		text += " (over HTTP/2)"
	}
	return text
}

// addHeaders adds a subscription's own headers, with their values opened. The library's
// are set after it, and replace what has their names.
func addHeaders(header http.Header, keys *Keys, subscription string, own map[string]string) error {
	for name, value := range own {
		if refusedHeader(name) {
			continue
		}
		plain, err := keys.openHeader(subscription, name, value)
		if err != nil {
			return fmt.Errorf("%w (the header %q of subscription %q)", err, name, subscription)
		}
		header[http.CanonicalHeaderKey(name)] = []string{plain}
	}
	return nil
}

// buffers are what answers are read into.
var buffers = sync.Pool{New: func() any { return new([maxSnippet]byte) }}

// read takes up to maxAnswer of the answer, so that the connection can be used
// again, and keeps the beginning of a failure's for the owner.
func read(answer *http.Response, r *Result) error {
	if answer.Body == http.NoBody {
		return nil
	}
	buf := buffers.Get().(*[maxSnippet]byte)
	defer buffers.Put(buf)
	keep := answer.StatusCode < 200 || answer.StatusCode >= 300
	for total := 0; total < maxAnswer; {
		n, err := answer.Body.Read(buf[:])
		if room := maxSnippet - len(r.Snippet); keep && room > 0 {
			r.Snippet = append(r.Snippet, buf[:min(n, room)]...)
		}
		total += n
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}
