package sender_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/memory"
)

// guarded is a registry that allows public addresses alone, with a subscriber sub_a.
func guarded(t *testing.T, cfg *sender.RegistryConfig) *sender.Registry[*memory.Tx] {
	t.Helper()
	store, err := memory.New(nil)
	require.NoError(t, err)
	keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: make([]byte, 32)})
	require.NoError(t, err)
	r, err := sender.NewRegistry(store, keys, cfg)
	require.NoError(t, err)
	_, _, err = r.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	return r
}

const forDevelopment = "; for development, and for subscribers inside, set Network.AllowPrivateNetworks, which allows private addresses and http"

func TestFieldErrors(t *testing.T) {
	r := guarded(t, nil)
	for name, c := range map[string]struct {
		n             sender.NewSubscription
		field, reason string
		text          string // the whole
	}{
		"http": {
			sender.NewSubscription{URL: "http://example.com/"}, "url", "the scheme is http: use https",
			"sender: invalid subscription: url: guard: the scheme is http: use https" + forDevelopment,
		},
		"localhost": {
			sender.NewSubscription{URL: "https://localhost:8080/"}, "url", `the host "localhost" is this machine: give a public name`,
			`sender: invalid subscription: url: guard: the host "localhost" is this machine: give a public name` + forDevelopment,
		},
		"private": {
			sender.NewSubscription{URL: "https://10.0.0.1/"}, "url", "the address 10.0.0.1 may not be called: give one that is globally routable",
			"sender: invalid subscription: url: guard: the address 10.0.0.1 may not be called: give one that is globally routable" + forDevelopment,
		},
		"metadata": {
			sender.NewSubscription{URL: "https://169.254.169.254/"}, "url", "the address 169.254.169.254 may not be called: give one that is globally routable",
			"sender: invalid subscription: url: guard: the address 169.254.169.254 may not be called: give one that is globally routable",
		},
		"no URL": {
			sender.NewSubscription{URL: "ftp://example.com/"}, "url", `the scheme is "ftp": use https`,
			`sender: invalid subscription: url: guard: the scheme is "ftp": use https`,
		},
		"event type": {
			sender.NewSubscription{EventTypes: []string{"a*"}}, "event_types", `event type "a*": it must be an exact type, "prefix.*" or "*": event type has the character '*' at offset 1: allowed are ASCII letters, digits, hyphens and underscores, in words joined by single full stops`, "",
		},
		"no event types":       {sender.NewSubscription{EventTypes: []string{}}, "event_types", `the list is empty: name one or more, or "*" for all`, ""},
		"too many event types": {sender.NewSubscription{EventTypes: make([]string, 101)}, "event_types", `it asks for 101 event types: at most 100 are allowed; "prefix.*" covers many`, ""},
		"long description":     {sender.NewSubscription{Description: strings.Repeat("x", 1025)}, "description", "it has 1025 bytes, at most 1024 are allowed", "sender: invalid subscription: description: it has 1025 bytes, at most 1024 are allowed"},
		"description with NUL": {sender.NewSubscription{Description: "\x00"}, "description", "description has a NUL at offset 0: it must be UTF-8 without NUL", "sender: invalid subscription: description has a NUL at offset 0: it must be UTF-8 without NUL"},
		"header":               {sender.NewSubscription{Settings: sender.Settings{Headers: map[string]string{"Host": "x"}}}, "headers", `the header "Host" is not yours to set`, `sender: invalid subscription: settings: the header "Host" is not yours to set`},
		"max in flight":        {sender.NewSubscription{Settings: sender.Settings{MaxInFlight: -1}}, "max_in_flight", "max in flight is -1: it must be from 1 to 1000, or 0", ""},
		"rate":                 {sender.NewSubscription{Settings: sender.Settings{Rate: -1}}, "rate", "the rate is -1: it must be from 0.001 to 10000 a second, or 0", ""},
		"timeout":              {sender.NewSubscription{Settings: sender.Settings{Timeout: time.Minute}}, "timeout", "the timeout is 1m0s: it must be from 1s to 10s, or 0", ""},
		"proxy":                {sender.NewSubscription{Settings: sender.Settings{Proxy: "eu"}}, "proxy", "the proxy is not one that may be used here: there are none", "sender: invalid subscription: settings: the proxy is not one that may be used here: there are none (RegistryConfig.Proxies)"},
		"certificate":          {sender.NewSubscription{ClientCertificate: &sender.ClientCertificate{}}, "client_certificate", "CertificatePEM has no PEM block: give one of the type CERTIFICATE", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.n.Subscriber = "sub_a"
			if c.n.URL == "" {
				c.n.URL = "https://example.com/"
			}
			_, err := r.Subscribe(t.Context(), c.n)
			require.ErrorIs(t, err, sender.ErrInvalid)
			all := sender.FieldErrors(err)
			require.Len(t, all, 1)
			require.Equal(t, c.field, all[0].Field)
			require.Equal(t, c.reason, all[0].Reason)
			if c.text != "" {
				require.EqualError(t, err, c.text)
			}
			require.ErrorContains(t, err, c.reason, "the whole text has the reason")
		})
	}
}

// All that is wrong with a form is found at once, in an update as well, and through what a
// caller wraps around it.
func TestFieldErrorsOfAWholeForm(t *testing.T) {
	r := guarded(t, nil)
	bad := sender.NewSubscription{
		Subscriber: "sub_a", URL: "http://localhost/", EventTypes: []string{"a*", "ok", "b c"}, Description: "\xff",
		Settings: sender.Settings{Rate: -1, Headers: map[string]string{"Host": "x"}},
	}
	fields := func(err error) (all []string) {
		for _, f := range sender.FieldErrors(fmt.Errorf("registering: %w", err)) {
			all = append(all, f.Field)
		}
		return all
	}
	want := []string{"url", "event_types", "event_types", "description", "headers", "rate"}
	_, err := r.Subscribe(t.Context(), bad)
	require.Equal(t, want, fields(err))
	var first *sender.FieldError
	require.True(t, errors.As(err, &first))
	require.Equal(t, "url", first.Field)

	s, err := r.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: "https://example.com/"})
	require.NoError(t, err)
	_, err = r.Update(t.Context(), s.ID, sender.SubscriptionChange{URL: &bad.URL, EventTypes: bad.EventTypes, Description: &bad.Description, Settings: &bad.Settings})
	require.Equal(t, want, fields(err))
	require.Empty(t, sender.FieldErrors(nil))
	require.Empty(t, sender.FieldErrors(sender.ErrInvalid))
}

func TestFieldErrorOfACallback(t *testing.T) {
	_, err := guarded(t, nil).Callback(t.Context(), "sub_a", "http://localhost/done")
	require.EqualError(t, err, "sender: invalid callback: url: guard: the scheme is http: use https"+forDevelopment)
	require.Equal(t, "the scheme is http: use https", sender.FieldErrors(err)[0].Reason)

	// Where private networks are allowed already, nothing else is to be set.
	inside := guarded(t, &sender.RegistryConfig{Network: sender.Network{AllowPrivateNetworks: true}})
	_, err = inside.Callback(t.Context(), "sub_a", "http://localhost/done")
	require.NoError(t, err)
	_, err = inside.Callback(t.Context(), "sub_a", "https://169.254.169.254/")
	require.EqualError(t, err, "sender: invalid callback: url: guard: the address 169.254.169.254 may not be called: give one that is not denied, and no metadata service")
}
