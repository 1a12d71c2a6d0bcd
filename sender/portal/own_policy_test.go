package portal_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/portal"
)

// A failing endpoint says when no more is tried by its own policy.
func TestOwnPolicyOfAnEndpoint(t *testing.T) {
	t.Parallel()
	var after atomic.Int64
	after.Store(int64(7 * time.Hour))
	b := newBed(t, func(c *portal.Config) {
		c.Policy = func(sender.Settings) sender.EffectivePolicy {
			return sender.EffectivePolicy{DisableAfter: time.Duration(after.Load())}
		}
	})
	x := b.ada.bad
	v := b.visit("sub_ada")
	ends := func(after time.Duration) string {
		return b.endpoint(x).Health.FailingSince.Add(after).UTC().Format(time.RFC3339)
	}
	require.Contains(t, v.get("/endpoints/"+x).text, ends(7*time.Hour))
	after.Store(int64(sender.NeverDisable))
	require.NotContains(t, v.get("/endpoints/"+x).text, ends(7*time.Hour))
	require.NotContains(t, v.get("/endpoints/"+x).text, ends(120*time.Hour))
}
