package backoff_test

import (
	"testing"
	"time"

	"github.com/surehook/surehook/backoff"
)

func BenchmarkNext(b *testing.B) {
	policies := map[string]backoff.Policy{
		"reference":   {},
		"exponential": {Schedule: backoff.Exponential{}, Jitter: backoff.Full()},
	}
	for name, p := range policies {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			s := backoff.State{Attempt: 5, Age: 3 * time.Hour, RetryAfter: time.Minute}
			for b.Loop() {
				p.Next(s, 0.5)
			}
		})
	}
}
