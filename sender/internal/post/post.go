package post

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/internal/guard"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/http1"
	"github.com/surehook/surehook/sender/internal/http2"
	"github.com/surehook/surehook/signing"
)

const (
	// maxAnswer is how much of an answer's body is read. A longer one is cut off, and its
	// connection closed.
	maxAnswer = 16 << 10
	// maxSnippet is how much of a failed attempt's answer is kept.
	maxSnippet = 1 << 10
)

// DefaultUserAgent is the header's value unless another is given. Proxies are asked with it.
const DefaultUserAgent = "surehook"

// CheckUserAgent reports what is wrong with the UserAgent of config, such as
// "dispatch: Config". Over HTTP/2, no request can be sent with a control character.
func CheckUserAgent(config, value string) error {
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
		return fmt.Errorf("%s.UserAgent is %q: it must be of printable ASCII characters", config, value)
	}
	return nil
}

// Config is what the requests of a poster have in common. Schemes and Now must be given.
type Config struct {
	Policy    guard.Policy        // which addresses may be called
	Timeout   time.Duration       // of an attempt, from the dial to the end of the answer
	Places    int                 // attempts at a time
	Proxies   map[string]*url.URL // that requests can name; copied
	Unguarded http.RoundTripper   // if not nil: makes all of them, and is guarded by nobody
	Schemes   []signing.Scheme    // sign every request
	UserAgent string
	Now       func() time.Time // the local clock: how long attempts take
}

// Request is one POST that is to be made, with all opened that is sealed where it
// comes from, except its certificate.
type Request struct {
	Subscription string // its id, which errors name
	URL          *url.URL
	Event        string      // its id
	Attempt      int         // its number
	At           time.Time   // when it is signed, on the clock of those who verify it
	Header       http.Header // the subscription's own, or nil. Prepare adds ours to it, which win
	Body         []byte
	Keyring      *signing.Keyring
	Timeout      time.Duration // if it is shorter than the poster's; 0: that

	// Anew has it made on a connection that was not used before.
	Anew bool

	// Proxy is the name of the one to post through; "": none.
	Proxy string

	// SealedCertificate is the client certificate as it is stored; empty: none. Connections
	// are kept under its hash, so that it is not opened for each attempt.
	SealedCertificate []byte
}

// Answer is what came of a request.
type Answer struct {
	StartedAt  time.Time // the request's At
	Duration   time.Duration
	Class      sender.Class
	StatusCode int           // 0: no answer
	Error      string        // what went wrong, for the owner of the URL; "" for success
	Snippet    []byte        // the beginning of a failure's body
	Header     http.Header   // nil without an answer
	RetryAfter time.Duration // what it asked for; 0: nothing

	// ProxyFailed tells that it is the operator's proxy that failed.
	ProxyFailed bool
	// ClosedIdle tells that a used connection was closed before the first byte of an answer,
	// or that the server has said that it has not processed the request.
	ClosedIdle bool
	// Ours tells that this machine is to blame: it had no resources left for a connection, or
	// has no authorities' certificates by which to verify a server.
	Ours bool
}

// Poster makes attempts: one POST each. It is safe for concurrent use.
type Poster struct {
	cfg        Config
	transports *transports
	userAgent  []string
}

// New returns a Poster.
func New(c Config) *Poster {
	c.Proxies = cloneProxies(c.Proxies)
	return &Poster{cfg: c, transports: newTransports(c), userAgent: []string{c.UserAgent}}
}

// CloseIdle closes the connections that no attempt uses, except those of an unguarded
// transport, which may be used elsewhere. It returns how many transports are kept for
// proxies and certificates.
func (p *Poster) CloseIdle() int { return p.transports.closeIdle() }

// Proxies are those that were used, and how they do, in no order.
func (p *Poster) Proxies(now time.Time) []ProxyState { return p.transports.proxyStates(now) }

var jsonType = []string{"application/json"}

// Exchange is an attempt under way: what is sent, and what is known of it before
// its answer.
type Exchange struct {
	poster    *Poster
	url       *url.URL
	header    http.Header
	body      []byte
	transport http.RoundTripper
	own       *dedicatedTransport
	timeout   time.Duration
	at        time.Time
	began     time.Time // on the local clock
}

// Prepare makes the request of an attempt. It returns an error if the request cannot be
// signed, or not be sent as it asks; ErrProbed, if it is not to be made now. Otherwise
// what it returns is to be sent, or ended.
//
// certificate opens the client certificate, if there is one, when a transport is made for
// it. It is no field of the request, so that a closure can stay on its caller's stack.
func (p *Poster) Prepare(r *Request, certificate func() (*tls.Certificate, error)) (x Exchange, err error) {
	x = Exchange{poster: p, url: r.URL, header: r.Header, body: r.Body, timeout: p.cfg.Timeout, at: r.At}
	if x.transport, x.own, err = p.transports.of(r, certificate); err != nil {
		return x, err
	}
	signed := false
	defer func() {
		if !signed { // also if a scheme panics
			x.End()
		}
	}()
	if r.Anew {
		x.transport = onNewConnection(x.transport)
	}
	if r.Timeout > 0 {
		x.timeout = min(x.timeout, r.Timeout)
	}
	if x.header == nil {
		x.header = make(http.Header, 8)
	}
	x.header["Content-Type"] = jsonType
	x.header["User-Agent"] = p.userAgent
	x.header["Webhook-Attempt"] = []string{strconv.Itoa(r.Attempt)}
	if err := signing.Sign(x.header, p.cfg.Schemes, r.Event, r.At, r.Body, r.Keyring); err != nil {
		return x, err
	}
	signed = true
	x.began = p.cfg.Now()
	return x, nil
}

// SetTraceparent has the request sent with a trace context. It wins over a header of the
// subscription's own.
func (x *Exchange) SetTraceparent(value string) { x.header["Traceparent"] = []string{value} }

// Header returns the headers that are sent, secrets included.
func (x *Exchange) Header() http.Header { return x.header }

// Timeout is within what time of Prepare the attempt is to end.
func (x *Exchange) Timeout() time.Duration { return x.timeout }

// Request returns what is sent. GetBody stays nil: with it net/http's transports could
// send the request twice.
func (x *Exchange) Request(ctx context.Context) *http.Request {
	r := http.Request{
		Method: http.MethodPost, URL: x.url, Host: x.url.Host, Header: x.header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: http1.NewBody(x.body), ContentLength: int64(len(x.body)),
	}
	if x.poster.cfg.Unguarded != nil {
		r.Body = io.NopCloser(bytes.NewReader(x.body)) // net/http sends such a body together with the headers
	}
	return r.WithContext(ctx)
}

// Send makes the POST. If take is not nil it reads the answer's body, and its error
// is the attempt's.
func (x *Exchange) Send(ctx context.Context, take func(body io.Reader) error) Answer {
	defer x.End()
	if x.poster.cfg.Unguarded != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, x.timeout)
		defer cancel()
	} else {
		ctx = until{ctx, time.Now().Add(x.timeout)}
	}
	answer, err := x.transport.RoundTrip(x.Request(ctx))
	return x.Conclude(ctx, answer, err, take)
}

// End lets go of the transport.
func (x *Exchange) End() { x.poster.transports.release(x.own) }

// Conclude says what came of an attempt, from what RoundTrip returned. take is as for
// Send.
func (x *Exchange) Conclude(ctx context.Context, answer *http.Response, err error, take func(body io.Reader) error) Answer {
	r := Answer{StartedAt: x.at}
	second := spokeHTTP2(answer, err)
	if err != nil {
		r.Class, r.Error = classify(ctx, err, false)
		r.ProxyFailed = byProxy(err)
		r.ClosedIdle = errors.Is(err, http1.ErrClosedIdle) || errors.Is(err, http2.ErrRefused)
		if r.Ours = system.exhausted(err) && !r.ProxyFailed; r.Ours {
			x.poster.CloseIdle() // the next attempts need what idle connections hold
		}
		if ts := x.poster.transports; ts.roots == nil && ts.Unguarded == nil && withoutAuthorities(err) {
			r.Ours, r.Error = true, noAuthorities
		}
		r.Error = naming(r.Error, second)
		r.Duration = x.poster.cfg.Now().Sub(x.began)
		return r
	}
	defer answer.Body.Close()
	if answer.StatusCode < 100 || answer.StatusCode > 999 { // net/http lets HTTP/2 have any number
		r.Class, r.Error = sender.ClassProtocol, naming("the answer is malformed: its status is not one of three digits", second)
		r.Duration = x.poster.cfg.Now().Sub(x.began)
		return r
	}
	r.StatusCode, r.Header = answer.StatusCode, answer.Header
	switch {
	case answer.StatusCode == http.StatusSwitchingProtocols: // what follows is no body, and may never end
	case take != nil:
		err = take(answer.Body)
	default:
		err = read(answer, &r)
	}
	r.Duration = x.poster.cfg.Now().Sub(x.began)
	r.RetryAfter, _ = backoff.ParseRetryAfter(answer.Header.Get("Retry-After"), r.StartedAt.Add(r.Duration))
	switch {
	case answer.StatusCode == http.StatusNotModified:
		r.Class, r.Error = sender.ClassRedirect, "answered 304 (not modified), which is no answer to a POST: only 2xx is success"
	case answer.StatusCode >= 300 && answer.StatusCode < 400:
		r.Class, r.Error = sender.ClassRedirect, fmt.Sprintf("answered %d: redirects are not followed", answer.StatusCode)
	case answer.StatusCode < 200 || answer.StatusCode >= 400:
		r.Class, r.Error = sender.ClassStatus, fmt.Sprintf("answered %d", answer.StatusCode)
	case err != nil:
		r.Class, r.Error = classify(ctx, err, true)
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

// buffers are what answers are read into.
var buffers = sync.Pool{New: func() any { return new([maxSnippet]byte) }}

// read takes up to maxAnswer of the answer, so that the connection can be used
// again, and keeps the beginning of a failure's for the owner.
func read(answer *http.Response, r *Answer) error {
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
	if early, ok := answer.Body.(interface{ Taken() error }); ok { // ours
		return early.Taken()
	}
	return nil
}
