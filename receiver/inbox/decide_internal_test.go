package inbox

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/receiver"
)

func TestDecide(t *testing.T) {
	cfg := (*Config)(nil).withDefaults()
	cfg.Policy.Jitter = backoff.None()
	for _, test := range []struct {
		name    string
		attempt int
		age     time.Duration
		reason  receiver.Reason
		after   time.Duration
		giveUp  bool
	}{
		{"the first failure", 1, 0, receiver.ReasonApply, time.Second, false},
		{"the fourth", 4, time.Minute, receiver.ReasonPanic, 8 * time.Second, false},
		{"at most an hour", 50, 40 * time.Hour, receiver.ReasonApply, time.Hour, false},
		{"up to the horizon", 80, 72*time.Hour - time.Minute, receiver.ReasonTimeout, time.Minute, false},
		{"behind the horizon", 80, 72 * time.Hour, receiver.ReasonApply, 0, true},
		{"the database is at fault", 80, 720 * time.Hour, receiver.ReasonDatabase, time.Hour, false},
		{"the commit is", 80, 720 * time.Hour, receiver.ReasonCommit, time.Hour, false},
		{"the last attempt", 100, time.Hour, receiver.ReasonApply, 0, true},
		{"of the database, too", 100, time.Hour, receiver.ReasonConflict, 0, true},
		{"lost with their process", 101, time.Hour, "", 0, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			after, giveUp := decide(cfg.Policy, cfg.MaxAttempts, Claim{Attempt: test.attempt, Age: test.age}, test.reason, 0.5)
			require.Equal(t, test.after, after)
			require.Equal(t, test.giveUp, giveUp)
		})
	}
}
