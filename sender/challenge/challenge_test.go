package challenge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/challenge"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/sendertest"
	"github.com/surehook/surehook/signing"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// tokenIn returns the token in a challenge's body.
func tokenIn(t *testing.T, body []byte) string {
	t.Helper()
	var event struct {
		Data struct{ Token string }
	}
	require.NoError(t, json.Unmarshal(body, &event))
	require.Regexp(t, "^[A-Za-z0-9_-]{43}$", event.Data.Token, "256 bits")
	return event.Data.Token
}

// echo answers with the result of f for the token.
func echo(t *testing.T, status int, f func(token string) string) sendertest.Step {
	return sendertest.Func(func(w http.ResponseWriter, r *http.Request) {
		var body json.RawMessage
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		w.WriteHeader(status)
		fmt.Fprint(w, f(tokenIn(t, body)))
	})
}

func challenged(b *bedtest.Bed, cfg *challenge.Config) *sender.Registry[*memory.Tx] {
	b.T.Helper()
	cfg.Network = bedtest.Private
	challenger, err := challenge.New(cfg)
	require.NoError(b.T, err)
	reg, err := sender.NewRegistry(b.Store, b.Keys, &sender.RegistryConfig{Network: bedtest.Private, Challenger: challenger, Proxies: []string{"eu"}})
	require.NoError(b.T, err)
	return reg
}

func TestChallengeAnswered(t *testing.T) {
	asJSON := func(token string) string { return `{"token":"` + token + `"}` }
	for name, step := range map[string]sendertest.Step{
		"JSON":           echo(t, 200, asJSON),
		"more JSON":      echo(t, 200, func(token string) string { return "\n{\"ok\":true, \"token\" : \"" + token + "\"}\n" }),
		"text":           echo(t, 200, func(token string) string { return token }),
		"text and space": echo(t, 201, func(token string) string { return " " + token + "\r\n" }),
		"1 KiB":          echo(t, 200, func(token string) string { return token + strings.Repeat(" ", 1024-len(token)) }),
	} {
		t.Run(name, func(t *testing.T) {
			b := bedtest.New(t)
			_, secret, err := b.Registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
			require.NoError(t, err)
			ep := sendertest.NewEndpoint(t, step)
			s, err := challenged(b, &challenge.Config{UserAgent: "me"}).Subscribe(t.Context(), sender.NewSubscription{
				Subscriber: "sub_a", URL: ep.URL() + "/hook", Settings: sender.Settings{Headers: map[string]string{"X-Api-Key": "k"}},
			})
			require.NoError(t, err)
			_, err = b.Registry.Subscription(t.Context(), s.ID)
			require.NoError(t, err)

			require.Len(t, ep.Requests(), 1)
			p := ep.Requests()[0]
			require.NoError(t, p.Verify(secret))
			require.Equal(t, "POST /hook", p.Method+" "+p.URL.Path)
			require.Equal(t, "k", p.Header.Get("X-Api-Key"), "with the settings that it is to have")
			require.Equal(t, "me", p.Header.Get("User-Agent"))
			require.Equal(t, "1", p.Header.Get("Webhook-Attempt"))
			var event map[string]any
			require.NoError(t, json.Unmarshal(p.Body, &event))
			require.Equal(t, p.Header.Get("Webhook-Id"), event["id"])
			require.Equal(t, "webhook.challenge", event["type"])
			require.Equal(t, map[string]any{"type": "subscription", "id": s.ID}, event["object"])
			require.EqualValues(t, 1, event["version"])
		})
	}
}

func TestChallengeNotAnswered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		step   sendertest.Step
		class  sender.Class
		status int
		says   string
	}{
		"nothing":         {sendertest.Status(204), challenge.Class, 204, "is not the token"},
		"another token":   {sendertest.Answer(200, nil, `{"token":"`+strings.Repeat("A", 43)+`"}`), challenge.Class, 200, "is not the token"},
		"a part of it":    {echo(t, 200, func(token string) string { return token[:42] }), challenge.Class, 200, "is not the token"},
		"more than it":    {echo(t, 200, func(token string) string { return token + "A" }), challenge.Class, 200, "is not the token"},
		"in another case": {echo(t, 200, strings.ToLower), challenge.Class, 200, "is not the token"},
		"the body back":   {sendertest.Func(func(w http.ResponseWriter, r *http.Request) { _ = r.Write(w) }), challenge.Class, 200, "is not the token"},
		"huge":            {echo(t, 200, func(token string) string { return token + strings.Repeat(" ", 1025-len(token)) }), challenge.Class, 200, "more than 1024 bytes"},
		"endless":         {sendertest.Endless(), challenge.Class, 200, "more than 1024 bytes"},
		"with 400":        {echo(t, 400, func(token string) string { return token }), sender.ClassStatus, 400, "answered 400"},
		"elsewhere":       {sendertest.Redirect(307, "/elsewhere"), sender.ClassRedirect, 307, "redirects are not followed"},
		"never":           {sendertest.Hang(), sender.ClassTimeout, 0, "no whole answer"},
		"slowly":          {sendertest.Drip(50*time.Millisecond, 1000), sender.ClassTimeout, 200, "no whole answer"},
		"not HTTP":        {sendertest.Garbage(), sender.ClassProtocol, 0, "is not valid HTTP"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bedtest.New(t)
			_, _, err := b.Registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
			require.NoError(t, err)
			ep := sendertest.NewEndpoint(t, c.step)
			timeout := time.Duration(0) // the default
			if c.class == sender.ClassTimeout {
				timeout = 3 * time.Second // the request arrives in that time
			}
			_, err = challenged(b, &challenge.Config{Timeout: timeout}).Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: ep.URL()})
			require.ErrorIs(t, err, sender.ErrChallenge)
			var failed *challenge.Error
			require.ErrorAs(t, err, &failed)
			require.Equal(t, c.class, failed.Class, failed.Text)
			require.Equal(t, c.status, failed.StatusCode)
			require.Contains(t, failed.Text, c.says)
			require.Contains(t, err.Error(), failed.Text)
			require.NotContains(t, err.Error(), "127.0.0.1")
			require.Len(t, ep.Requests(), 1)
			list, err := b.Registry.Subscriptions(t.Context(), "", "", 0)
			require.NoError(t, err)
			require.Empty(t, list)
		})
	}
}

// challengeOf returns the challenge that a registry hands to its challenger.
func challengeOf(t *testing.T, rawURL string, s sender.Settings) sender.Challenge {
	t.Helper()
	keyring, err := signing.NewKeyring(signing.Key{Secret: signing.GenerateSecret()})
	require.NoError(t, err)
	return sender.Challenge{Subscriber: "sub_a", Subscription: "wsub_1", URL: rawURL, Settings: s, Keyring: keyring}
}

func TestChallengeBlocked(t *testing.T) {
	ep := sendertest.NewEndpoint(t)
	strict, err := challenge.New(nil)
	require.NoError(t, err)
	require.ErrorIs(t, strict.Challenge(t.Context(), challengeOf(t, ep.URL(), sender.Settings{})), sender.ErrInvalid)

	// The name leads inside, and only the dial can tell.
	proxy := bedtest.NewConnectProxy(t, nil)
	challenger, err := challenge.New(&challenge.Config{
		Network: sender.Network{AllowPrivateNetworks: true, Deny: loopback}, Proxies: map[string]*url.URL{"eu": proxy.URL(t)},
	})
	require.NoError(t, err)
	for _, s := range []sender.Settings{{}, {Proxy: "eu"}} {
		err = challenger.Challenge(t.Context(), challengeOf(t, bedtest.AtLocalhost(ep.URL()), s))
		var failed *challenge.Error
		require.ErrorAs(t, err, &failed)
		require.Equal(t, sender.ClassBlocked, failed.Class)
	}
	asked, _ := proxy.Requests()
	require.Empty(t, asked)
	require.Empty(t, ep.Requests())
}

// A failing proxy says nothing about the endpoint. A proxy that cannot reach the endpoint
// does.
func TestChallengeThroughProxyThatFails(t *testing.T) {
	for answer, blamed := range map[string]bool{"": false, "HTTP/1.1 407 Who\r\n\r\n": false, "HTTP/1.1 503 Nobody there\r\n\r\n": true} {
		serve := func(conn net.Conn) {
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = io.WriteString(conn, answer)
		}
		if answer == "" {
			serve = nil
		}
		at, stop := bedtest.Listen(t, serve)
		defer stop()
		b := bedtest.New(t)
		b.Subscribe("sub_a", "http://endpoint/")
		reg := challenged(b, &challenge.Config{Proxies: map[string]*url.URL{"eu": {Scheme: "http", Host: at, User: url.UserPassword("u", "hunter2")}}})
		_, err := reg.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: "http://127.0.0.1:9/", Settings: sender.Settings{Proxy: "eu"}})
		require.ErrorContains(t, err, "the sender's proxy ")
		require.NotContains(t, err.Error(), "hunter2")
		if blamed {
			require.ErrorIs(t, err, sender.ErrChallenge)
		} else {
			require.ErrorIs(t, err, sender.ErrProxy)
			require.NotErrorIs(t, err, sender.ErrChallenge)
		}
	}
}

// While a proxy is failing, a few requests at a time find out whether it still fails. A challenge
// beyond them names the proxy in its error, and not the endpoint.
func TestChallengeThroughProxyThatIsProbed(t *testing.T) {
	var conns atomic.Int32
	reached, end := make(chan struct{}), make(chan struct{})
	at, stop := bedtest.Listen(t, func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 4096))
		if conns.Add(1) > 2 {
			reached <- struct{}{}
			<-end
		}
	})
	defer stop()
	c, err := challenge.New(&challenge.Config{Network: bedtest.Private, Proxies: map[string]*url.URL{"eu": {Scheme: "http", Host: at}}})
	require.NoError(t, err)
	ask := challengeOf(t, "http://127.0.0.1:9/", sender.Settings{Proxy: "eu", Timeout: 30 * time.Second})
	for range 2 {
		require.ErrorIs(t, c.Challenge(t.Context(), ask), sender.ErrProxy)
	}
	var probes sync.WaitGroup
	defer probes.Wait()
	defer close(end)
	for range 4 {
		probes.Go(func() { _ = c.Challenge(t.Context(), ask) })
		<-reached
	}
	err = c.Challenge(t.Context(), ask)
	require.ErrorIs(t, err, sender.ErrProxy)
	require.ErrorContains(t, err, "4 attempts at a time find out")
}

// A challenge shows the certificate that the subscription will have.
func TestChallengeWithClientCertificate(t *testing.T) {
	a := bedtest.NewAuthority(t)
	srv := bedtest.NewCertServer(t, a)
	b := bedtest.New(t)
	_, _, err := b.Registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	challenger, err := challenge.New(&challenge.Config{Network: bedtest.Private})
	require.NoError(t, err)
	challenger.Trust(a.Pool)
	reg, err := sender.NewRegistry(b.Store, b.Keys, &sender.RegistryConfig{Network: bedtest.Private, Challenger: challenger})
	require.NoError(t, err)
	_, err = reg.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: bedtest.AtLocalhost(srv.URL), ClientCertificate: a.Client("alice")})
	require.ErrorIs(t, err, sender.ErrChallenge, "the server answers without a token")
	_, _, names := srv.Count()
	require.Equal(t, []string{"alice"}, names)
}

// A subscription that is wrong in itself is refused before anybody is asked. No transaction
// is open while an endpoint is asked.
func TestChallengeComesAfterChecksAndBeforeTheTransaction(t *testing.T) {
	b := bedtest.New(t)
	b.Subscribe("sub_a", "http://endpoint/")
	posted := 0
	endpoint := bedtest.TransportFunc(func(r *http.Request) (*http.Response, error) {
		posted++
		// The memory store has one transaction at a time.
		ctx, cancel := context.WithTimeout(r.Context(), 30*time.Second)
		defer cancel()
		_, err := b.Registry.Subscriber(ctx, "sub_a")
		return nil, errors.Join(errors.New("not reachable"), err)
	})
	reg := challenged(b, &challenge.Config{UnguardedTransport: endpoint})
	for _, n := range []sender.NewSubscription{
		{Subscriber: "sub_a", URL: "http://endpoint/#x"},
		{Subscriber: "sub_a", URL: "http://endpoint/", EventTypes: []string{""}},
		{Subscriber: "sub_a", URL: "http://endpoint/", Settings: sender.Settings{Rate: -1}},
		{Subscriber: "sub_a", URL: "http://endpoint/", ClientCertificate: &sender.ClientCertificate{}},
	} {
		_, err := reg.Subscribe(t.Context(), n)
		require.ErrorIs(t, err, sender.ErrInvalid)
	}
	_, err := reg.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_x", URL: "http://endpoint/"})
	require.ErrorIs(t, err, sender.ErrNotFound)
	_, err = reg.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: "http://endpoint/", Settings: sender.Settings{Proxy: "eu"}})
	require.ErrorContains(t, err, "UnguardedTransport")
	require.NotErrorIs(t, err, sender.ErrChallenge, "the endpoint is not to blame")
	require.Zero(t, posted)

	_, err = reg.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: "http://endpoint/"})
	require.ErrorIs(t, err, sender.ErrChallenge)
	require.Equal(t, 1, posted)
	err = b.Store.InTx(t.Context(), func(tx *memory.Tx) error {
		_, err := reg.SubscribeTx(t.Context(), tx, sender.NewSubscription{Subscriber: "sub_a", URL: "http://endpoint/"})
		return err
	})
	require.NoError(t, err)
	require.Equal(t, 1, posted, "in the caller's transaction nobody is asked")
}

func TestChallengeGivenUpByTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		b.Subscribe("sub_a", "http://endpoint/")
		reg := challenged(b, &challenge.Config{UnguardedTransport: sendertest.NewRoundTripper(sendertest.Hang())})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := reg.Subscribe(ctx, sender.NewSubscription{Subscriber: "sub_a", URL: "http://endpoint/"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, sender.ErrChallenge)
		challenger, err := challenge.New(&challenge.Config{Network: bedtest.Private, UnguardedTransport: sendertest.NewRoundTripper(sendertest.Hang())})
		require.NoError(t, err)
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, challenger.Challenge(ctx, challengeOf(t, "http://endpoint/", sender.Settings{})), context.DeadlineExceeded, "nobody has proved anything")

		began := time.Now()
		_, err = reg.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: "http://endpoint/", Settings: sender.Settings{Timeout: 3 * time.Second}})
		require.ErrorIs(t, err, sender.ErrChallenge)
		require.Equal(t, 3*time.Second, time.Since(began), "the subscription's own timeout is the shorter one")
	})
}

// The endpoint is not to blame if this machine had no descriptors left.
func TestChallengeWithoutResources(t *testing.T) {
	c, err := challenge.New(&challenge.Config{Network: bedtest.Private})
	require.NoError(t, err)
	c.Dial(nil, func(string) error { return syscall.EMFILE })
	err = c.Challenge(t.Context(), challengeOf(t, "http://127.0.0.1:9/", sender.Settings{}))
	require.EqualError(t, err, "sender: the challenge could not be made: the sender had no resources left for a connection")
	require.NotErrorIs(t, err, sender.ErrChallenge)
}

// An endpoint may close a connection in the moment in which it is used again. That would fail
// a challenge, and it is not made again.
func TestEachChallengeHasAConnectionOfItsOwn(t *testing.T) {
	ep := sendertest.NewEndpoint(t, sendertest.Status(204), sendertest.Status(204))
	c, err := challenge.New(&challenge.Config{Network: bedtest.Private})
	require.NoError(t, err)
	opened := 0
	c.Dial(nil, func(string) error { opened++; return nil })
	for n := range 2 {
		require.ErrorIs(t, c.Challenge(t.Context(), challengeOf(t, ep.URL(), sender.Settings{})), sender.ErrChallenge)
		require.Equal(t, n+1, opened)
	}
}

// Whose event cannot be made is not challenged, and has proved nothing.
func TestChallengeWithoutAnEvent(t *testing.T) {
	rt := sendertest.NewRoundTripper()
	c, err := challenge.New(&challenge.Config{Network: bedtest.Private, UnguardedTransport: rt})
	require.NoError(t, err)
	ask := challengeOf(t, "http://endpoint/", sender.Settings{})
	ask.Subscription = "a\n"
	require.ErrorIs(t, c.Challenge(t.Context(), ask), sender.ErrInvalidEvent)
	require.Empty(t, rt.Requests())
}

func TestNewChallengerRefuses(t *testing.T) {
	_, err := challenge.New(&challenge.Config{Timeout: 31 * time.Second, Schemes: []signing.Scheme{}, UserAgent: "acme\n", Network: sender.Network{Deny: []netip.Prefix{{}}}})
	for _, part := range []string{`Config.UserAgent is "acme\n"`, "Timeout is 31s", "Schemes is empty", "Config.Network: "} {
		require.ErrorContains(t, err, part)
	}
	_, err = challenge.New(&challenge.Config{Timeout: 30 * time.Second})
	require.NoError(t, err)
}
