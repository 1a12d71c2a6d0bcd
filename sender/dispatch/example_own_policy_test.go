package dispatch_test

import (
	"fmt"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// A customer wants to be tried often, for a day, and asks for more than the operator allows.
func ExamplePolicy_Of() {
	policy := dispatch.Policy{Own: sender.PolicyBounds{Allowed: true, MaxHorizon: 12 * time.Hour}}
	effective := policy.Of(sender.Settings{
		RetryDelays: []time.Duration{time.Minute, time.Hour, 5 * time.Hour},
		Horizon:     24 * time.Hour,
		Gone:        sender.GoneStops,
	})
	fmt.Println("tried at", effective.Tries)
	fmt.Println("disabled after", effective.DisableAfter, "and by 410:", effective.Gone == sender.GoneStops)
	// Output:
	// tried at [0s 1m0s 1h1m0s 6h1m0s 11h1m0s 12h0m0s]
	// disabled after 120h0m0s and by 410: true
}
