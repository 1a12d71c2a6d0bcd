package backoff_test

import (
	"fmt"
	"time"

	"github.com/surehook/surehook/backoff"
)

// The reference schedule of an endpoint that never answers, with the jitter in
// the middle of its range.
func ExamplePolicy_Next() {
	var policy backoff.Policy // the zero value is the reference
	var age time.Duration
	for attempt := 1; ; attempt++ {
		const chance = 0.5 // draw it: rand.Float64()
		delay, retry := policy.Next(backoff.State{Attempt: attempt, Age: age}, chance)
		if !retry {
			fmt.Printf("attempt %d at %v failed: give up\n", attempt, age)
			return
		}
		fmt.Printf("attempt %d at %v failed: wait %v\n", attempt, age, delay)
		age += delay
	}
	// Output:
	// attempt 1 at 0s failed: wait 1m0s
	// attempt 2 at 1m0s failed: wait 5m0s
	// attempt 3 at 6m0s failed: wait 30m0s
	// attempt 4 at 36m0s failed: wait 2h0m0s
	// attempt 5 at 2h36m0s failed: wait 12h0m0s
	// attempt 6 at 14h36m0s failed: wait 12h0m0s
	// attempt 7 at 26h36m0s failed: wait 12h0m0s
	// attempt 8 at 38h36m0s failed: wait 12h0m0s
	// attempt 9 at 50h36m0s failed: wait 12h0m0s
	// attempt 10 at 62h36m0s failed: wait 9h24m0s
	// attempt 11 at 72h0m0s failed: give up
}

func ExamplePolicy_Validate() {
	policy := backoff.Policy{
		Schedule: backoff.Exponential{Base: time.Hour, Max: time.Minute},
		Jitter:   backoff.Proportional(20),
	}
	fmt.Println(policy.Validate())
	// Output:
	// backoff: the cap of the exponential schedule is 1m0s: it must be at least the base, 1h0m0s, or zero for 12h0m0s
	// backoff: the fraction of the proportional jitter is 20: it must be from 0 to 1
}

func ExampleReference() {
	policy := backoff.Reference()
	policy.Horizon = 24 * time.Hour
	delay, retry := policy.Next(backoff.State{Attempt: 6, Age: 20 * time.Hour}, 0.5)
	fmt.Println(delay, retry)
	// Output: 4h0m0s true
}

func ExampleFixed() {
	schedule, err := backoff.Fixed(5*time.Second, 5*time.Minute, 30*time.Minute)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(schedule.Delay(1), schedule.Delay(2), schedule.Delay(3), schedule.Delay(99))
	// Output: 5s 5m0s 30m0s 30m0s
}

func ExampleExponential() {
	schedule := backoff.Exponential{Base: time.Second, Factor: 4, Max: time.Minute}
	for attempt := 1; attempt <= 5; attempt++ {
		fmt.Print(schedule.Delay(attempt), " ")
	}
	// Output: 1s 4s 16s 1m0s 1m0s
}

func ExampleJitter_Apply() {
	const chance = 0.25
	fmt.Println(backoff.None().Apply(time.Minute, chance))
	fmt.Println(backoff.Full().Apply(time.Minute, chance))
	fmt.Println(backoff.Equal().Apply(time.Minute, chance))
	fmt.Println(backoff.Proportional(0.5).Apply(time.Minute, chance))
	// Output:
	// 1m0s
	// 15s
	// 37.5s
	// 45s
}

func ExampleParseRetryAfter() {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	for _, value := range []string{"120", "Sun, 01 Mar 2026 12:05:00 GMT", "Sun, 01 Mar 2026 11:00:00 GMT", "-1"} {
		wait, ok := backoff.ParseRetryAfter(value, now)
		fmt.Println(wait, ok)
	}
	// Output:
	// 2m0s true
	// 5m0s true
	// 0s true
	// 0s false
}
