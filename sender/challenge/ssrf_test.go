package challenge_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/ssrftest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/challenge"
)

// A challenge calls no forbidden address, whatever its URL's name resolves to by Go's
// resolver, which the challenger uses.
func TestNothingForbiddenIsChallenged(t *testing.T) {
	t.Parallel()
	testNames(t, ssrftest.NewOutside())
}

// The machine's own resolvers find nothing forbidden either, on a machine where every
// connection would arrive.
func TestNothingForbiddenIsChallengedInANetworkOfItsOwn(t *testing.T) {
	t.Parallel()
	ssrftest.InOwnNetwork(t, "TestForbiddenInChild")
}

// TestForbiddenInChild is the test in the process that the test above starts.
func TestForbiddenInChild(t *testing.T) {
	if o := ssrftest.Child(t); o != nil {
		testNames(t, o)
	}
}

// testNames challenges URLs with the attacks' names.
func testNames(t *testing.T, o *ssrftest.Outside) {
	for _, a := range ssrftest.Attacks {
		if a.Own && !o.Real || a.Number == 97 || a.Name == "localhost" { // only the URL is refused
			continue
		}
		cfg := challenge.Config{Network: sender.Network{Deny: a.Deny}, Timeout: 10 * time.Second}
		if a.Outcome == string(sender.ClassTimeout) {
			cfg.Timeout = 100 * time.Millisecond
		}
		t.Run(fmt.Sprintf("%d %s", a.Number, a.About), func(t *testing.T) {
			c, err := challenge.New(&cfg)
			require.NoError(t, err)
			c.Dial(o.Resolver, o.Watch)
			err = c.Challenge(t.Context(), challengeOf(t, "https://"+a.Name+"/", sender.Settings{}))
			var failed *challenge.Error
			require.ErrorAs(t, err, &failed)
			a.Check(t, o.Take(), string(failed.Class))
		})
	}
}
