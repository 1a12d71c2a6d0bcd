package sender

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTransportsUsedLastAreKept(t *testing.T) {
	ts := newTransports(transportsConfig{proxies: map[string]*url.URL{
		"a": {Scheme: "http", Host: "a"}, "b": {Scheme: "http", Host: "b"}, "c": {Scheme: "http", Host: "c"},
	}})
	ts.most = 2
	target := &url.URL{Scheme: "http", Host: "target"}
	of := func(proxy string) *ownTransport {
		t.Helper()
		transport, own, err := ts.of(&Target{Settings: &Settings{Proxy: proxy}}, target)
		require.NoError(t, err)
		require.Same(t, own, transport)
		return own
	}
	a, b := of("a"), of("b")
	require.NotSame(t, a, b)
	require.Same(t, a, of("a"))
	c := of("c")
	require.True(t, b.evicted, "the one that was not used for longest goes")
	require.Same(t, a, of("a"))
	require.Same(t, c, of("c"))
	require.NotSame(t, b, of("b"), "and is made anew")
	require.Len(t, ts.own, 2)
	require.Equal(t, 2, ts.used.Len())
	require.Equal(t, 3, a.attempts)

	for _, none := range []*Settings{nil, {}, {Headers: map[string]string{"X-A": "1"}, MaxInFlight: 1}} {
		transport, own, err := ts.of(&Target{Settings: none}, target)
		require.NoError(t, err)
		require.Nil(t, own)
		require.Same(t, ts.plain, transport)
	}
}
