package dispatch

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/post"
)

// watched drives a networkWatch at given seconds.
type watched struct {
	networkWatch
	at time.Time
}

func newWatched() *watched {
	return &watched{at: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
}

func (w *watched) pass(d time.Duration) { w.at = w.at.Add(d) }

// fail lets hosts with numbers in [from, to) fail. They are spread over the given number of
// subscribers.
func (w *watched) fail(from, to, subscribers int) {
	for i := from; i < to; i++ {
		w.observe(fmt.Sprintf("host%d", i), fmt.Sprintf("sub%d", i%subscribers), true, false, w.at)
	}
}

func (w *watched) answer() { w.observe("alive", "sub0", false, true, w.at) }

func TestNetworkWatch(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(w *watched)
		down bool
	}{
		{"nothing is known", func(*watched) {}, false},
		{"five hosts of three subscribers", func(w *watched) { w.fail(0, 5, 3) }, true},
		{"four hosts", func(w *watched) { w.fail(0, 4, 4) }, false},
		{"four hosts, again and again", func(w *watched) { w.fail(0, 4, 4); w.fail(0, 4, 4) }, false},
		{"two subscribers", func(w *watched) { w.fail(0, 300, 2) }, false},
		{"three hundred endpoints of one", func(w *watched) { w.fail(0, 300, 1) }, false},
		{"three hundred of one, then two others'", func(w *watched) { w.fail(0, 300, 1); w.fail(301, 303, 400) }, true},
		{"two of five fail elsewhere only later", func(w *watched) { w.fail(0, 3, 3); w.pass(61 * time.Second); w.fail(3, 5, 5) }, false},
		{"within a minute", func(w *watched) { w.fail(0, 3, 3); w.pass(60 * time.Second); w.fail(3, 5, 5) }, true},
		{"one answers", func(w *watched) { w.fail(0, 4, 4); w.answer(); w.fail(4, 5, 5) }, false},
		{"one answers afterwards", func(w *watched) { w.fail(0, 5, 5); w.answer() }, false},
		{"neither failed at connecting nor answered", func(w *watched) { w.fail(0, 5, 5); w.observe("x", "y", false, false, w.at) }, true},
		{"such are no evidence", func(w *watched) {
			for i := range 10 {
				w.observe(fmt.Sprint(i), fmt.Sprint(i), false, false, w.at)
			}
		}, false},
		{"a thousand dead ones while one other answers now and then", func(w *watched) {
			for range 100 {
				w.fail(0, 1000, 1000)
				w.pass(time.Second)
				w.answer()
				w.fail(0, 1000, 1000)
			}
		}, false},
		{"the one is silent for a minute", func(w *watched) {
			w.fail(0, 1000, 1000)
			w.answer()
			w.pass(60 * time.Second)
			w.fail(0, 1000, 1000)
		}, false},
		{"the one is silent for longer", func(w *watched) {
			w.fail(0, 1000, 1000)
			w.answer()
			w.pass(61 * time.Second)
			w.fail(0, 5, 5)
		}, true},
		{"all has answered before it fails", func(w *watched) { w.answer(); w.fail(0, 5, 5) }, true},
		{"it stays down while hardly anything is tried", func(w *watched) { w.fail(0, 5, 5); w.pass(10 * time.Minute); w.fail(0, 1, 1); w.pass(10 * time.Minute) }, true},
		{"but not for ever", func(w *watched) { w.fail(0, 5, 5); w.pass(15*time.Minute + 1) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWatched()
			c.run(w)
			require.Equal(t, c.down, w.down(w.at))
			require.LessOrEqual(t, len(w.hosts)+len(w.subscribers), networkHosts+networkSubscribers, "memory is bounded")
		})
	}
}

func TestNetworkWatchSince(t *testing.T) {
	w := newWatched()
	w.fail(0, 1, 1)
	w.pass(2 * time.Minute)
	began := w.at
	w.fail(0, 3, 3)
	w.pass(30 * time.Second)
	w.fail(3, 5, 5)
	w.pass(5 * time.Minute)
	w.fail(0, 5, 5)
	require.True(t, w.down(w.at))
	require.Equal(t, began, w.since(), "the first of those that failed together")
}

// An attempt is evidence about the network.
func TestDialingMet(t *testing.T) {
	const failed, answered, neither = "failed at connecting", "answered", "neither"
	for _, c := range []struct {
		result           Result
		begun, connected bool
		want             string
		proxied          bool
	}{
		{Result{StatusCode: 200}, false, false, answered, false},
		{Result{Class: sender.ClassStatus, StatusCode: 500}, true, true, answered, false},
		{Result{Class: sender.ClassRedirect, StatusCode: 301}, false, false, answered, false},
		{Result{Class: sender.ClassTLS}, true, true, answered, false},
		{Result{Class: sender.ClassTLS}, false, false, answered, false},
		{Result{Class: sender.ClassReset}, false, false, answered, false},
		{Result{Class: sender.ClassProtocol}, false, false, answered, false},
		{Result{Class: sender.ClassDNS}, true, false, failed, false},
		{Result{Class: sender.ClassConnect}, true, false, failed, false},
		{Result{Class: sender.ClassConnect}, false, false, failed, false},
		{Result{Class: sender.ClassTimeout}, true, false, failed, false},                     // while dialling
		{Result{Class: sender.ClassTimeout}, false, false, neither, false},                   // after the request was sent
		{Result{Class: sender.ClassTimeout}, true, true, answered, false},                    // a new connection, and then nothing
		{Result{Class: sender.ClassTimeout, StatusCode: 200}, false, false, answered, false}, // in the middle of the answer
		{Result{Class: sender.ClassBlocked}, true, false, neither, false},

		{Result{Class: sender.ClassConnect, ProxyFailed: true}, true, false, neither, true},  // the proxy refuses
		{Result{Class: sender.ClassTimeout, ProxyFailed: true}, true, false, neither, true},  // the proxy hangs
		{Result{Class: sender.ClassTimeout, ProxyFailed: true}, false, false, neither, true}, // through a tunnel that the proxy has made
		{Result{Class: sender.ClassConnect}, true, false, failed, true},                      // the proxy tried the host in vain
		{Result{Class: sender.ClassTimeout}, true, false, failed, true},                      // the proxy tried for too long
		{Result{Class: sender.ClassTimeout}, false, false, neither, true},                    // after the proxy said that the host accepted
		{Result{Class: sender.ClassReset}, false, false, neither, true},                      // the host then went, or so it seems
		{Result{Class: sender.ClassTLS}, false, false, answered, true},
		{Result{Class: sender.ClassStatus, StatusCode: 500}, false, false, answered, true},
		{Result{StatusCode: 200}, false, false, answered, true},
	} {
		var d post.Dialing
		d.Begun.Store(c.begun)
		d.Connected.Store(c.connected)
		got := neither
		switch f, a := reachability(&d, &c.result, c.proxied); {
		case f && a:
			got = "both"
		case f:
			got = failed
		case a:
			got = answered
		}
		require.Equal(t, c.want, got, "%+v, begun %v, connected %v", c.result, c.begun, c.connected)
	}
}
