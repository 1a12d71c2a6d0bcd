package dispatch_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/ssrftest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/memory"
)

// outside is the network to which a dispatcher's packets go.
type outside struct{ *ssrftest.Outside }

// misled is a store whose subscriptions have another URL than the registry took,
// as if an older release or another program had written it.
type misled struct {
	*memory.Store
	url string
}

func (m misled) Step(ctx context.Context, p dispatch.ExpandParams, b dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	x, claims, err := m.Store.Step(ctx, p, b)
	for _, c := range claims.Claimed {
		c.Target.URL = m.url
	}
	return x, claims, err
}

// attempt makes one attempt at a URL, for a subscription with settings.
func (o outside) attempt(t *testing.T, rawURL string, cfg dispatch.Config, settings sender.Settings) (dispatch.Result, bool) {
	t.Helper()
	b := bedtest.New(t)
	reg, err := sender.NewRegistry(b.Store, b.Keys, &sender.RegistryConfig{Network: bedtest.Private, Proxies: []string{"eu"}})
	require.NoError(t, err)
	_, _, err = reg.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	_, err = reg.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: "http://elsewhere.example/", Settings: settings})
	require.NoError(t, err)
	b.Publish("sub_a")
	return o.run(t, misled{b.Store, rawURL}, b.Keys, cfg)
}

func (o outside) run(t *testing.T, store dispatch.Store, keys *sender.Keys, cfg dispatch.Config) (result dispatch.Result, made bool) {
	t.Helper()
	cfg.Hooks.AttemptEnd = func(_ context.Context, _ *dispatch.Claimed, r *dispatch.Result) { result, made = *r, true }
	cfg.Logger = quiet()
	if cfg.Timeout == 0 {
		cfg.Timeout = 10 * time.Second
	}
	d, err := dispatch.New(store, keys, &cfg)
	require.NoError(t, err)
	d.Dial(o.Resolver, o.Watch)
	_, err = d.RunOnce(t.Context())
	require.NoError(t, err)
	d.CloseIdle()
	return result, made
}

// nothingBut requires that all arrived requests are among the allowed ones.
func (o outside) nothingBut(t *testing.T, allowed ...string) {
	t.Helper()
	for _, address := range o.Take() {
		require.True(t, slices.Contains(allowed, address), "%s was called", address)
	}
}

// A registry takes none of the URLs, neither for a new subscription nor for a change nor
// for a callback, and it takes no invalid name.
func TestForbiddenURLsAreNotRegistered(t *testing.T) {
	t.Parallel()
	reg, err := sender.NewRegistry(bedtest.New(t).Store, bedtest.NewKeys(t, "1"), nil)
	require.NoError(t, err)
	_, _, err = reg.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	kept, err := reg.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: "https://example.com/"})
	require.NoError(t, err)
	refused := func(raw string) {
		t.Helper()
		_, err := reg.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: raw})
		require.ErrorIs(t, err, sender.ErrInvalid, raw)
		_, err = reg.Callback(t.Context(), "sub_a", raw)
		require.ErrorIs(t, err, sender.ErrInvalid, raw)
		_, err = reg.Update(t.Context(), kept.ID, sender.SubscriptionChange{URL: &raw})
		require.ErrorIs(t, err, sender.ErrInvalid, raw)
	}
	for _, tt := range ssrftest.URLs {
		refused(tt.URL)
		if rest, ok := strings.CutPrefix(tt.URL, "http:"); ok && tt.Problem != "" {
			refused("https:" + rest)
		}
	}
	long := strings.Repeat("a", 63)
	for name, ok := range map[string]bool{
		strings.Repeat(long+".", 3) + long[:61]: true, strings.Repeat(long+".", 3) + long[:62]: false,
		long + ".example": true, long + "a.example": false, "a..example": false, ".example": false, "example.": false,
		"-a.example": false, "a-.example": false, "a_b.example": true, "_a.example": true, "db": false, "a b.example": false, "bücher.example": false,
	} {
		if !ok {
			refused("https://" + name + "/")
			continue
		}
		_, err := reg.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: "https://" + name + "/"})
		require.NoError(t, err, name)
	}
}

// unnamed are the numbers of the URLs for which a name server is asked.
var unnamed = []int{12, 15, 16, 80}

// testURLs posts to the URLs, which are in the store although the registry refuses them.
func (o outside) testURLs(t *testing.T) {
	for i, tt := range ssrftest.URLs {
		if o.Foreign && slices.Contains(unnamed, i+1) {
			continue
		}
		t.Run(fmt.Sprintf("%d %s", i+1, tt.URL), func(t *testing.T) {
			result, made := o.attempt(t, tt.URL, dispatch.Config{}, sender.Settings{})
			if slices.Contains(tt.Dials, ssrftest.Harmless) {
				o.nothingBut(t, ssrftest.Harmless)
				return
			}
			o.nothingBut(t)
			require.False(t, made && result.Class == sender.ClassNone, "delivered")
		})
	}
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// newProxy starts a proxy that makes no tunnel, and notes the requests for them.
func (o outside) newProxy(t *testing.T) *url.URL {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.Note(r.Host)
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	require.NoError(t, err)
	return u
}

// No forbidden address is called, whatever a URL says and whatever its name resolves to by
// Go's resolver, which the dispatcher uses.
func TestNothingForbiddenIsCalled(t *testing.T) {
	t.Parallel()
	o := outside{ssrftest.NewOutside()}
	t.Run("URL", o.testURLs)
	t.Run("name", o.testNames)
	t.Run("rebinding", o.testRebinding)
}
