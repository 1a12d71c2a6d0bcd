package dispatch_test

import (
	"net"
	"net/http"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/porttest"
	"github.com/surehook/surehook/internal/ssrftest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/challenge"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/sendertest"
)

// onlyLoopback allows 127.0.0.1, and no other address that is not public.
var onlyLoopback = sender.Network{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}

func at(ep *sendertest.Endpoint) string { return strings.TrimPrefix(ep.URL(), "http://") }

// Only the endpoint itself is called, whatever an answer names: 101, 104.
func TestAnswersLeadNowhereElse(t *testing.T) {
	trap := sendertest.NewEndpoint(t)
	elsewhere := []string{"http://169.254.169.254/latest/meta-data/", "file:///etc/passwd", "//10.0.0.1/", "gopher://127.0.0.1:6379/", trap.URL() + "/"}
	for _, location := range elsewhere {
		for _, status := range []int{300, 301, 302, 303, 305, 307, 308} {
			o, ep := outside{ssrftest.NewOutside()}, sendertest.NewEndpoint(t, sendertest.Redirect(status, location))
			result, made := o.attempt(t, ep.URL()+"/", dispatch.Config{Network: onlyLoopback}, sender.Settings{})
			require.True(t, made)
			require.Equal(t, sender.ClassRedirect, result.Class)
			require.Equal(t, []string{at(ep)}, o.Take())
			require.Len(t, ep.Requests(), 1)
			ep.Close()
		}
	}
	header := http.Header{
		"Alt-Svc": {`h2="` + at(trap) + `"; ma=86400, h3=":443"`}, "Refresh": {"0; url=" + trap.URL()},
		"Link": {"<" + trap.URL() + ">; rel=preconnect"}, "Location": {trap.URL()}, "Content-Location": {trap.URL()},
	}
	o, ep := outside{ssrftest.NewOutside()}, sendertest.NewEndpoint(t)
	ep.Set(sendertest.Answer(http.StatusNoContent, header, ""), sendertest.Answer(http.StatusNoContent, header, ""))
	for range 2 {
		result, made := o.attempt(t, ep.URL()+"/", dispatch.Config{Network: onlyLoopback}, sender.Settings{})
		require.True(t, made)
		require.Equal(t, sender.ClassNone, result.Class)
	}
	require.Equal(t, []string{at(ep), at(ep)}, o.Take())
	require.Empty(t, trap.Requests())
}

// The guard stands where connections are made. Everything that could make connections
// without it says so in its name: 103.
func TestOneFieldReplacesTheGuardedTransport(t *testing.T) {
	transport := reflect.TypeFor[http.RoundTripper]()
	unsafe := []reflect.Type{reflect.TypeFor[*http.Client](), reflect.TypeFor[*http.Transport](), reflect.TypeFor[*net.Dialer](), reflect.TypeFor[*net.Resolver]()}
	for _, config := range []any{dispatch.Config{}, challenge.Config{}, sender.RegistryConfig{}, sender.Network{}, dispatch.Hooks{}, sender.Settings{}} {
		for _, field := range reflect.VisibleFields(reflect.TypeOf(config)) {
			if field.Type.Implements(transport) {
				require.Equal(t, "UnguardedTransport", field.Name)
			}
			require.NotContains(t, unsafe, field.Type, field.Name)
			if field.Type.Kind() == reflect.Func && field.Type.NumOut() > 0 {
				require.NotEqual(t, reflect.TypeFor[net.Conn](), field.Type.Out(0), field.Name)
			}
		}
	}
}

// A connection that was made while more was allowed is not used by a dispatcher that allows
// less: 105.
func TestNarrowedNetworkFindsNoConnection(t *testing.T) {
	o, ep := outside{ssrftest.NewOutside()}, sendertest.NewEndpoint(t)
	b := bedtest.New(t)
	b.Subscribe("sub_a", ep.URL()+"/")
	wide := b.Dispatcher(dispatch.Config{}) // its connection stays open
	defer wide.CloseIdle()
	b.Publish("sub_a")
	_, err := wide.RunOnce(t.Context())
	require.NoError(t, err)
	require.Len(t, ep.Requests(), 1)

	b.Publish("sub_a")
	result, made := o.run(t, b.Store, b.Keys, dispatch.Config{})
	require.True(t, made)
	require.Equal(t, sender.ClassBlocked, result.Class)
	require.Len(t, ep.Requests(), 1)
	require.Empty(t, o.Take())
}

// The owner of a URL learns nothing of the network behind it, neither whether somebody
// listens there nor their answers: 107.
func TestBlockedTellsNothing(t *testing.T) {
	listens := sendertest.NewEndpoint(t, sendertest.Answer(http.StatusForbidden, nil, "the secret of the inner service"))
	var texts []string
	for _, raw := range []string{listens.URL(), "http://" + porttest.Refusing(t), "http://169.254.169.254/", "http://a.example.com/", "http://j.example.com/", "http://10.255.255.255:1/"} {
		o := outside{ssrftest.NewOutside()}
		b := bedtest.New(t)
		b.Subscribe("sub_a", "http://elsewhere.example/")
		b.Publish("sub_a")
		result, made := o.run(t, misled{b.Store, raw}, b.Keys, dispatch.Config{})
		require.True(t, made)
		d := b.Delivery()
		require.Len(t, d.Attempts, 1)
		a := d.Attempts[0]
		require.Equal(t, sender.ClassBlocked, a.Class)
		require.Zero(t, a.StatusCode)
		require.Empty(t, a.Snippet)
		require.Empty(t, result.RetryAfter)
		texts = append(texts, a.Error)
	}
	for _, text := range texts {
		require.Equal(t, texts[0], text)
		require.NotRegexp(t, `[0-9]|example|refused`, text)
	}
	require.Empty(t, listens.Requests())
}

// A header that got into the store past the checks neither makes a second request nor
// replaces a header of the library: 108.
func TestStoredHeadersInjectNothing(t *testing.T) {
	for name, value := range map[string]string{
		"X-A": "b\r\nWebhook-Id: evt_forged", "X-B": "b\nX-C: d", "X-D": "b\x00c", "X-E": "b\r\n\r\nPOST /admin HTTP/1.1\r\nHost: inner\r\n\r\n",
		"X-F\r\nX-G": "b", "X H": "b", "X-I:": "b", "": "b",
		"Host": "inner.example", "Transfer-Encoding": "chunked", "Content-Length": "0", "Connection": "upgrade", "Upgrade": "h2c",
		"Webhook-Signature": "v1,forged", "webhook_id": "evt_forged", "Idempotency-Key": "again", "Content-Type": "text/plain",
	} {
		ep := sendertest.NewEndpoint(t)
		b := bedtest.New(t)
		_, secret := b.Subscribe("sub_a", ep.URL()+"/")
		d := b.DispatcherWith(sender.Settings{Headers: map[string]string{name: value}}, dispatch.Config{})
		b.Publish("sub_a")
		stats, err := d.RunOnce(t.Context())
		require.NoError(t, err, name)
		if refusedWhole := stats.Delivered == 0; refusedWhole {
			require.Empty(t, ep.Requests(), name)
			continue
		}
		require.Len(t, ep.Requests(), 1, name)
		r := ep.Requests()[0]
		require.NoError(t, r.Verify(secret), name)
		require.Equal(t, ep.URL()+"/", r.URL.String(), name)
		require.Equal(t, []string{"application/json"}, r.Header["Content-Type"], name)
		for _, sent := range []string{"X-C", "X-G", "Upgrade", "Transfer-Encoding", "Idempotency-Key", "Webhook_id"} {
			require.Empty(t, r.Header[sent], name)
		}
		require.NotContains(t, r.Header.Get("Connection"), "upgrade")
		ep.Close()
	}
}
