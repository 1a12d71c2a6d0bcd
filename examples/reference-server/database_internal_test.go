package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestConnectTimeout(t *testing.T) {
	for url, want := range map[string]time.Duration{
		"postgres://127.0.0.1/x":                    connectTimeout,
		"postgres://127.0.0.1/x?connect_timeout=30": 30 * time.Second,
	} {
		config, err := poolConfig(url)
		require.NoError(t, err)
		require.Equal(t, want, config.ConnConfig.ConnectTimeout, url)
	}
}
