package portal_test

import (
	"bytes"
	"encoding/json"
	"html"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/catalogue/shop"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/portal"
	"github.com/surehook/surehook/sender/replay"
)

const (
	// hostile is a stranger's text in a field that takes any text.
	hostile = "<script>hacked=1</script>\"'><img src=x onerror=hacked=1>\u202edesrever\x1b[31m"
	prefix  = "/hooks/portal"
)

var portalKey = bytes.Repeat([]byte{7}, 32)

// bed is a sending service with a portal on it, under a prefix, at a time of its own.
type bed struct {
	t       *testing.T
	store   *memory.Store
	reg     *sender.Registry[*memory.Tx]
	pub     *sender.Publisher[*memory.Tx]
	history *history.History
	replays *replay.Replays
	disp    *dispatch.Dispatcher
	portal  *portal.Portal
	server  *httptest.Server
	secrets []string // of the subscribers

	mu         sync.Mutex
	now        time.Time
	log        bytes.Buffer
	cookieless bool // the browser keeps no cookie

	ada, bob things
}

// things are a subscriber's.
type things struct {
	good, bad, off, held string // ids of endpoints
	dead, delivered      string // ids of deliveries
	replay               string
}

func (b *bed) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *bed) pass(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

func (b *bed) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.Write(p)
}

func (b *bed) logged() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.String()
}

func (b *bed) config() *portal.Config {
	types, err := shop.New()
	require.NoError(b.t, err)
	return &portal.Config{
		Name: "Meridian Pay", Accent: "#0b7468", AccentDark: "#4fcdbc", Logo: logo, Return: "https://app.example.com/webhooks",
		Catalogue: types, DisableAfter: 120 * time.Hour,
		Now: b.clock, Timeout: time.Minute, Logger: slog.New(slog.NewTextHandler(b, nil)),
	}
}

const logo = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 132 28'%3E%3Ccircle cx='14' cy='14' r='10.5' fill='none' stroke='%230b7468' stroke-width='2.6'/%3E%3Ctext x='32' y='19' font-family='Helvetica,Arial,sans-serif' font-size='15' font-weight='700' fill='%230b7468'%3EMeridian Pay%3C/text%3E%3C/svg%3E"

func newBed(t *testing.T, change ...func(*portal.Config)) *bed {
	t.Helper()
	return newBedWithFacts(t, nil, change...)
}

// newBedWithFacts is a bed whose registry knows of which event types each event counts.
func newBedWithFacts(t *testing.T, facts []string, change ...func(*portal.Config)) *bed {
	t.Helper()
	b := &bed{t: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	var err error
	b.store, err = memory.New(&memory.Config{Now: b.clock})
	require.NoError(t, err)
	keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{1}, 32)})
	require.NoError(t, err)
	b.reg, err = sender.NewRegistry(b.store, keys, &sender.RegistryConfig{Now: b.clock, PayloadVersion: shop.Second, Facts: facts})
	require.NoError(t, err)
	b.pub, err = sender.NewPublisher(b.store, &sender.PublisherConfig{Now: b.clock})
	require.NoError(t, err)
	types, err := shop.New()
	require.NoError(t, err)
	b.history, err = history.New(b.store, &history.Config{Now: b.clock, Convert: types.Convert})
	require.NoError(t, err)
	b.replays, err = replay.New(b.store, &replay.Config{Now: b.clock})
	require.NoError(t, err)
	b.disp, err = dispatch.New(b.store, keys, &dispatch.Config{
		UnguardedTransport: roundTrip(answer), Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Chance: func() float64 { return 0 },
	})
	require.NoError(t, err)
	cfg := b.config()
	for _, c := range change {
		c(cfg)
	}
	b.portal, err = portal.New(b.backend(), [][]byte{portalKey}, cfg)
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle(prefix+"/", http.StripPrefix(prefix, b.portal))
	b.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		if b.cookieless {
			r.Header.Del("Cookie")
		}
		b.mu.Unlock()
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(b.server.Close)
	b.fill()
	return b
}

func (b *bed) backend() portal.Backend {
	return portal.Backend{Registry: b.reg, History: b.history, Replays: b.replays}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answer has the endpoints' answers by their names.
func answer(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	status, body, header := http.StatusOK, "thanks", http.Header{}
	switch host, _, _ := strings.Cut(r.URL.Hostname(), "."); host {
	case "bad":
		status, body = http.StatusServiceUnavailable, hostile
		header = http.Header{"Server": {hostile}, "Set-Cookie": {"hacked=1"}}
	case "moved":
		status, header = http.StatusMovedPermanently, http.Header{"Location": {"https://new.example.com/hooks"}}
	case "same":
		status = http.StatusNotModified
	case "unknown":
		return nil, &net.DNSError{Err: "no such host", IsNotFound: true}
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: r, ProtoMajor: 1, ProtoMinor: 1}, nil
}

// fill makes two subscribers with something of everything that a portal shows.
func (b *bed) fill() {
	b.ada.bad, b.bob.bad = b.begin("ada"), b.begin("bob")
	b.run()
	b.pass(80 * time.Hour) // past the horizon: the next attempt is the last one
	b.run()
	b.goOn("ada", &b.ada)
	b.goOn("bob", &b.bob)
	b.run()
	for name, x := range map[string]*things{"sub_ada": &b.ada, "sub_bob": &b.bob} {
		r, err := b.replays.ForSubscriber(name).Create(b.t.Context(), replay.Request{Filter: replay.Filter{EventType: "payout.*"}, By: "grace, of the operators", Reason: "an internal note"})
		require.NoError(b.t, err)
		x.replay = r.ID
		x.dead = b.deliveries(x.bad, sender.StatusDeadLettered)[0].ID
		x.delivered = b.deliveries(x.good, sender.StatusDelivered)[0].ID
	}
}

func (b *bed) subscribe(name, host, description string) string {
	b.t.Helper()
	s, err := b.reg.Subscribe(b.t.Context(), sender.NewSubscription{
		Subscriber: "sub_" + name, URL: "https://" + host + "." + name + ".example.com/hooks?a=<b>", EventTypes: []string{"invoice.*", "payout.settled"}, Description: description,
	})
	require.NoError(b.t, err)
	return s.ID
}

// begin makes a subscriber with an endpoint that fails.
func (b *bed) begin(name string) (bad string) {
	b.t.Helper()
	_, secret, err := b.reg.CreateSubscriber(b.t.Context(), sender.NewSubscriber{ID: "sub_" + name})
	require.NoError(b.t, err)
	b.secrets = append(b.secrets, secret.Reveal())
	bad = b.subscribe(name, "bad", hostile)
	b.publish("sub_"+name, "inv_1")
	b.publish("sub_"+name, "inv_2")
	return bad
}

func (b *bed) goOn(name string, x *things) {
	b.t.Helper()
	x.good, x.off, x.held = b.subscribe(name, "good", "ERP inbound"), b.subscribe(name, "off", ""), b.subscribe(name, "staging", "Staging")
	require.NoError(b.t, b.reg.Disable(b.t.Context(), x.off, hostile))
	require.NoError(b.t, b.reg.Pause(b.t.Context(), x.held))
	b.publish("sub_"+name, hostile)
	b.publish("sub_"+name, "inv_3")
}

func (b *bed) publish(subscriber, object string) {
	b.t.Helper()
	_, err := b.pub.Publish(b.t.Context(), sender.Event{
		Type: "invoice.paid", Subscriber: subscriber, Object: sender.Object{Type: "invoice", ID: strings.ReplaceAll(object, "\x1b", "")},
		Data: json.RawMessage(`{"note":"</pre><script>hacked=1</script>\u202e","of":"` + subscriber + `"}`),
	})
	require.NoError(b.t, err)
}

// run has the dispatcher do all that can be done now.
func (b *bed) run() {
	b.t.Helper()
	for range 10 {
		_, err := b.disp.RunOnce(b.t.Context())
		require.NoError(b.t, err)
	}
}

func (b *bed) deliveries(subscription string, status sender.Status) []sender.Delivery {
	b.t.Helper()
	list, _, err := b.history.Deliveries(b.t.Context(), history.DeliveryQuery{Subscription: subscription, Status: status})
	require.NoError(b.t, err)
	return list
}

func (b *bed) endpoint(id string) sender.Subscription {
	b.t.Helper()
	s, err := b.reg.Subscription(b.t.Context(), id)
	require.NoError(b.t, err)
	return s
}

func (b *bed) token(subscriber string) string {
	b.t.Helper()
	token, err := b.portal.Token(portal.Grant{Subscriber: subscriber, Name: "Acme <Logistics>", By: "ada@acme.example"})
	require.NoError(b.t, err)
	return token
}

// visitor is a browser, as far as HTTP goes.
type visitor struct {
	*bed
	client *http.Client
	root   string // the path of the session
	form   string // what its forms carry
}

// page is an answer.
type page struct {
	status int
	header http.Header
	text   string
	url    *url.URL // where it came from, after all redirects
}

// has ends the test unless the page has the words.
func (p page) has(t *testing.T, words ...string) {
	t.Helper()
	for _, w := range words {
		require.Contains(t, html.UnescapeString(p.text), w, "%s", p.url)
	}
}

func (b *bed) browser() *visitor {
	b.t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(b.t, err)
	return &visitor{bed: b, client: &http.Client{Timeout: 2 * time.Minute, Jar: insecure{jar}}}
}

// insecure keeps cookies for https in a test's http, as browsers do on localhost.
type insecure struct{ http.CookieJar }

func (j insecure) secure(u *url.URL) *url.URL {
	s := *u
	s.Scheme = "https"
	return &s
}

func (j insecure) SetCookies(u *url.URL, all []*http.Cookie) {
	j.CookieJar.SetCookies(j.secure(u), all)
}
func (j insecure) Cookies(u *url.URL) []*http.Cookie { return j.CookieJar.Cookies(j.secure(u)) }

// visit opens the portal for a subscriber.
func (b *bed) visit(subscriber string) *visitor {
	b.t.Helper()
	v := b.browser()
	p := v.send(prefix+"/open", url.Values{"token": {b.token(subscriber)}}, "Sec-Fetch-Site", "cross-site")
	require.Equal(b.t, http.StatusOK, p.status, p.text)
	v.root = strings.TrimSuffix(p.url.Path, "/")
	v.form = regexp.MustCompile(`name="form" value="([^"]+)"`).FindStringSubmatch(v.get("/secret").text)[1]
	return v
}

func (v *visitor) ask(method, path string, body url.Values, headers ...string) page {
	v.t.Helper()
	req, err := http.NewRequestWithContext(v.t.Context(), method, v.server.URL+path, strings.NewReader(body.Encode()))
	require.NoError(v.t, err)
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := v.client.Do(req)
	require.NoError(v.t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(v.t, err)
	return page{res.StatusCode, res.Header, string(text), res.Request.URL}
}

func (v *visitor) send(path string, body url.Values, headers ...string) page {
	v.t.Helper()
	return v.ask(http.MethodPost, path, body, headers...)
}

func (v *visitor) get(path string) page {
	v.t.Helper()
	return v.ask(http.MethodGet, v.root+path, nil)
}

// post sends a form of the session as a browser does.
func (v *visitor) post(path string, pairs ...string) page {
	v.t.Helper()
	return v.send(v.root+path, fields(append(pairs, "form", v.form)...))
}

func fields(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Add(pairs[i], pairs[i+1])
	}
	return v
}

// done ends the test unless the browser ends on a page that confirms the action.
func (v *visitor) done(p page, to, said string) {
	v.t.Helper()
	require.Equal(v.t, http.StatusOK, p.status, p.text)
	require.Equal(v.t, v.root+to, p.url.Path, "it was led there by GET")
	require.Contains(v.t, p.text, `role="status">`)
	require.Contains(v.t, p.text, "<p>"+said)
}
