package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The first steps are commands that work as they are shown.
func TestFirstSteps(t *testing.T) {
	t.Parallel()
	for addr, at := range map[string]string{"127.0.0.1:8080": "127.0.0.1:8080", ":8080": "127.0.0.1:8080", "0.0.0.0:80": "127.0.0.1:80", "[::]:80": "127.0.0.1:80", "[::1]:80": "[::1]:80", "hooks.internal:80": "hooks.internal:80"} {
		require.Contains(t, firstSteps(options{addr: addr}).Customer, "http://"+at+"/subscribers ")
	}
	require.NotContains(t, firstSteps(options{addr: ":80"}).Event, "subscriber_id")
	require.Contains(t, firstSteps(options{addr: ":80", addressed: true}).Event, `, "subscriber_id": "sub_`)
}
