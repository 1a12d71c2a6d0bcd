package post

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A proxy is failing from its second failure on, until it works or has not failed for a
// while. It may go on failing for longer than that.
func TestProxyWatch(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var w proxyWatch
	w.failed("one", "", start)
	require.False(t, w.failing(start))
	now := start
	for range 12 { // two hours
		now = now.Add(10 * time.Minute)
		w.failed("another", "", now)
		require.True(t, w.failing(now))
		require.Equal(t, start, w.first)
		require.Equal(t, "another", w.why)
	}
	require.True(t, w.failing(now.Add(proxyForget)))
	require.False(t, w.failing(now.Add(proxyForget+1)))

	w.failed("one", "", now.Add(proxyForget+1))
	require.False(t, w.failing(now.Add(proxyForget+1)), "what was long ago does not count")
	w.failed("two", "", now.Add(proxyForget+2))
	require.True(t, w.failing(now.Add(proxyForget+2)))
	require.Equal(t, now.Add(proxyForget+1), w.first)
	w.worked()
	require.False(t, w.failing(now.Add(proxyForget+2)))
}

// Attempts at others are held back unless it may be that the proxy forbids one host alone.
func TestProxyWatchOfHosts(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		hosts []string // of the failures
		holds bool
	}{
		"one failure":                       {[]string{""}, false},
		"the proxy itself":                  {[]string{"", ""}, true},
		"one host":                          {[]string{"a", "a", "a"}, false},
		"two hosts":                         {[]string{"a", "b"}, true},
		"and the first of them again":       {[]string{"a", "b", "a"}, true},
		"one host, and the proxy itself":    {[]string{"a", ""}, true},
		"the proxy itself, and one host":    {[]string{"", "a", "a"}, true},
		"one host, after the proxy worked":  {[]string{"a", "b", "worked", "a", "a"}, false},
		"another host, after it has worked": {[]string{"a", "worked", "b", "b"}, false},
	} {
		var w proxyWatch
		for _, host := range c.hosts {
			if host == "worked" {
				w.worked()
				continue
			}
			w.failed("why", host, now)
		}
		require.Equal(t, c.holds, w.holds(now), name)
	}
}
