package dispatch

import (
	"context"
	"fmt"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

// The operator is told of an outage once, however often it is seen: by a run that
// follows, or because the network comes and goes.
func TestOutageIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Dispatcher{now: time.Now, cfg: Config{}.withDefaults()}
		var down, up int
		d.cfg.Hooks.NetworkDown = func(context.Context, time.Time) { down++ }
		d.cfg.Hooks.NetworkUp = func(context.Context, time.Time) { up++ }
		p := newPump(d)
		attemptAt := func(i int) *attempt {
			return &attempt{url: &url.URL{Host: fmt.Sprintf("host%d", i)}, Claimed: Claimed{Target: &Target{Subscriber: fmt.Sprintf("sub%d", i)}}}
		}
		unplug := func() {
			for i := range 5 {
				p.mu.Lock()
				require.True(t, p.observe(attemptAt(i), &Result{Class: sender.ClassConnect}))
				p.mu.Unlock()
			}
			p.reportNetwork(t.Context())
		}
		plug := func() {
			p.mu.Lock()
			require.False(t, p.observe(attemptAt(1), &Result{StatusCode: 500, Class: sender.ClassStatus}))
			p.mu.Unlock()
			p.reportNetwork(t.Context())
		}
		since := time.Now()
		unplug()
		require.Equal(t, []int{1, 0, 1}, []int{down, up, len(p.notices)})
		require.Equal(t, sender.NoticeNetwork, p.notices[0].Kind)
		require.Equal(t, sender.Operator, p.notices[0].Subscriber)
		require.Contains(t, p.notices[0].Detail, since.UTC().Format(time.RFC3339))
		require.True(t, p.slots.probing)

		p = newPump(d)
		p.reportNetwork(t.Context())
		unplug()
		require.True(t, p.slots.probing)
		require.Equal(t, []int{1, 0, 0}, []int{down, up, len(p.notices)}, "another run knows of it")

		done := []*attempt{{failed: true}, {failed: false}}
		p.excuse(done)
		require.True(t, done[0].excused)
		require.False(t, done[1].excused, "an endpoint that answers 500 is not excused")

		plug()
		require.Equal(t, []int{1, 1}, []int{down, up})
		done = []*attempt{{failed: true}}
		p.excuse(done)
		require.False(t, done[0].excused)

		time.Sleep(2 * time.Minute)
		unplug()
		require.Equal(t, []int{2, 1, 0}, []int{down, up, len(p.notices)}, "it comes and goes")
		plug()
		time.Sleep(networkNoticeEvery)
		unplug()
		require.Equal(t, []int{3, 2, 1}, []int{down, up, len(p.notices)})

		time.Sleep(networkForget + time.Second)
		p.reportNetwork(t.Context())
		require.Equal(t, 3, up, "it is not believed for ever")
		require.False(t, p.slots.probing)
	})
}
