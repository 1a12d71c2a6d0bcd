package inbox_test

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/receiver/inbox"
)

// All that is wrong is said at once, in a line for each, and nothing starts.
func TestNewReportsEverything(t *testing.T) {
	_, err := inbox.New[*sql.Tx](nil, nil, nil, nil, &inbox.Config{
		Workers: -1, MaxAttempts: -2, Lease: -time.Second, Poll: -time.Minute, Policy: backoff.Policy{Horizon: -time.Hour},
	})
	require.Error(t, err)
	said := strings.Split(err.Error(), "\n")
	for _, want := range []string{"Workers is -1", "MaxAttempts is -2", "Lease is -1s", "Poll is -1m0s", "the horizon is -1h0m0s", "receiver is nil", "InTx is nil", "store is nil", "function that applies is nil"} {
		require.Contains(t, err.Error(), want)
	}
	require.Len(t, said, 9)
}
