package console_test

import (
	"bytes"
	"context"
	"encoding/json"
	"hash/crc32"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/catalogue/shop"
	"github.com/surehook/surehook/sender/console"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/replay"
)

const (
	// hostile is a stranger's text in a field that takes any text.
	hostile = "<script>hacked=1</script>\"'><img src=x onerror=hacked=1>\u202edesrever\x1b[31m"
	// headerValue is a secret of a subscription's owner.
	headerValue = "the-value-of-a-header"
	prefix      = "/ops/hooks"
)

var errDown = &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}

// bed is a sending service with a console on it, under a prefix, at a time of its own.
type bed struct {
	t        *testing.T
	store    *memory.Store
	fallible *fallibleStore // through which the history reads
	reg      *sender.Registry[*memory.Tx]
	pub      *sender.Publisher[*memory.Tx]
	history  *history.History
	replays  *replay.Replays
	disp     *dispatch.Dispatcher
	server   *httptest.Server
	client   *http.Client
	secret   string // of the subscriber sub_ada

	mu    sync.Mutex
	now   time.Time
	log   bytes.Buffer
	whose string // who the visitor is; "": nobody, who is refused

	good, bad, dead, off string // the ids of subscriptions
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

func (b *bed) visitor(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.whose = name
}

func (b *bed) authorize(w http.ResponseWriter, _ *http.Request) (string, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.whose == "" {
		http.Error(w, "who are you?", http.StatusUnauthorized)
	}
	return b.whose, b.whose != ""
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := newEmptyBed(t)
	b.fill()
	return b
}

func newEmptyBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{t: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), whose: "grace"}
	var err error
	b.store, err = memory.New(&memory.Config{Now: b.clock})
	require.NoError(t, err)
	keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{1}, 32)})
	require.NoError(t, err)
	b.reg, err = sender.NewRegistry(b.store, keys, &sender.RegistryConfig{Now: b.clock})
	require.NoError(t, err)
	b.pub, err = sender.NewPublisher(b.store, &sender.PublisherConfig{Now: b.clock})
	require.NoError(t, err)
	b.fallible = &fallibleStore{Store: b.store}
	b.history, err = history.New(b.fallible, &history.Config{Now: b.clock})
	require.NoError(t, err)
	b.replays, err = replay.New(b.store, &replay.Config{Now: b.clock})
	require.NoError(t, err)
	b.disp, err = dispatch.New(b.store, keys, &dispatch.Config{
		UnguardedTransport: roundTrip(answer), Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Chance: func() float64 { return 0 },
	})
	require.NoError(t, err)
	types, err := shop.New()
	require.NoError(t, err)
	pages, err := console.New(b.backend(), b.authorize, &console.Config{
		Name: "Test bed", Catalogue: types, SignOut: prefix + "/logout", Now: b.clock, Timeout: time.Minute, DisableAfter: 5 * 24 * time.Hour, Portal: b.portal, FirstSteps: console.FirstSteps{Endpoint: "register an endpoint with this"}, Logger: slog.New(slog.NewTextHandler(b, nil)),
	})
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle(prefix+"/", http.StripPrefix(prefix, pages))
	b.server = httptest.NewServer(mux)
	t.Cleanup(b.server.Close)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	b.client = &http.Client{Jar: jar, Timeout: 2 * time.Minute}
	_, secret, err := b.reg.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_ada"})
	require.NoError(t, err)
	b.secret = secret.Reveal()
	return b
}

// portal is a page of the console's, which tells whom it was asked for, and by whom.
func (b *bed) portal(_ context.Context, subscriber, by string) (string, error) {
	return b.server.URL + prefix + "/events?for=" + subscriber + "&by=" + by, nil
}

func (b *bed) backend() console.Backend {
	return console.Backend{Registry: b.reg, History: b.history, Replays: b.replays, Customers: customers{}, Jobs: newBedJobs(b)}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answer has the endpoints' answers by their names.
func answer(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	status, body, header := http.StatusOK, "thanks", http.Header{}
	switch r.URL.Hostname() {
	case "bad.example.com":
		status, body = http.StatusBadGateway, hostile
		header = http.Header{"Server": {hostile}, "Set-Cookie": {"hacked=1"}}
	case "dead.example.com":
		return nil, errDown
	}
	switch kind, _, _ := strings.Cut(r.URL.Hostname(), "."); kind {
	case "down":
		return nil, errDown
	case "gone":
		status = http.StatusGone
	case "moved":
		status = http.StatusMovedPermanently
	case "flaky":
		if crc32.ChecksumIEEE([]byte(r.Header.Get("Webhook-Id")+r.Header.Get("Webhook-Attempt")))%3 == 0 {
			status = http.StatusServiceUnavailable
		}
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: r, ProtoMajor: 1, ProtoMinor: 1}, nil
}

// fill makes something of everything that a console shows.
func (b *bed) fill() {
	t, ctx := b.t, b.t.Context()
	b.dead = b.subscribe("dead.example.com", hostile)
	b.publish(hostile)
	b.publish("2")
	b.run()
	b.pass(80 * time.Hour) // past the horizon: the next attempt is the last one
	b.run()
	b.good, b.bad, b.off = b.subscribe("good.example.com", ""), b.subscribe("bad.example.com", hostile), b.subscribe("off.example.com", "")
	require.NoError(t, b.reg.Disable(ctx, b.off, hostile))
	b.publish(hostile)
	b.run()
	_, err := b.replays.Create(ctx, replay.Request{Filter: replay.Filter{Status: sender.StatusDelivered, EventType: "invoice.*", Subscription: b.dead}, By: hostile, Reason: hostile})
	require.NoError(t, err)
}

func (b *bed) subscribe(host, description string) string {
	b.t.Helper()
	s, err := b.reg.Subscribe(b.t.Context(), sender.NewSubscription{
		Subscriber: "sub_ada", URL: "https://" + host + "/hooks?a=<b>", EventTypes: []string{"invoice.*"}, Description: description,
		Settings: sender.Settings{Headers: map[string]string{"X-Api-Key": headerValue}, Rate: 1000, MaxInFlight: 5, Timeout: 3 * time.Second},
	})
	require.NoError(b.t, err)
	return s.ID
}

func (b *bed) publish(object string) string {
	b.t.Helper()
	ref, err := b.pub.Publish(b.t.Context(), sender.Event{
		Type: "invoice.paid", Object: sender.Object{Type: "invoice", ID: strings.ReplaceAll(object, "\x1b", "")}, Data: json.RawMessage(`{"note":"</pre><script>hacked=1</script>\u202e"}`),
	})
	require.NoError(b.t, err)
	return ref.ID
}

// run has the dispatcher do all that can be done now.
func (b *bed) run() {
	b.t.Helper()
	for range 10 {
		_, err := b.disp.RunOnce(b.t.Context())
		require.NoError(b.t, err)
	}
}

// page is an answer.
type page struct {
	status int
	header http.Header
	text   string
	url    *url.URL // where it came from, after all redirects
}

func (b *bed) do(req *http.Request) page {
	b.t.Helper()
	res, err := b.client.Do(req)
	require.NoError(b.t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(b.t, err)
	return page{res.StatusCode, res.Header, string(text), res.Request.URL}
}

func (b *bed) get(path string) page {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.server.URL+prefix+path, nil)
	require.NoError(b.t, err)
	return b.do(req)
}

// post sends a form as a browser does from a page of the console.
func (b *bed) post(path string, form url.Values, headers ...string) page {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.server.URL+prefix+path, strings.NewReader(form.Encode()))
	require.NoError(b.t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return b.do(req)
}

func (b *bed) subscription(id string) sender.Subscription {
	b.t.Helper()
	s, err := b.reg.Subscription(b.t.Context(), id)
	require.NoError(b.t, err)
	return s
}

// deliveries are those of a subscription, the newest first.
func (b *bed) deliveries(subscription string) []sender.Delivery {
	b.t.Helper()
	list, _, err := b.history.Deliveries(b.t.Context(), history.DeliveryQuery{Subscription: subscription})
	require.NoError(b.t, err)
	return list
}

func form(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return v
}

// locked does something while the database is busy with another transaction.
func (b *bed) locked(do func()) {
	b.t.Helper()
	tx, err := b.store.Begin(context.WithoutCancel(b.t.Context()))
	require.NoError(b.t, err)
	defer func() { require.NoError(b.t, tx.Rollback()) }()
	do()
}
