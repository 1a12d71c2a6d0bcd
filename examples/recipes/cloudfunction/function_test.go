package cloudfunction

import (
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/GoogleCloudPlatform/functions-framework-go/funcframework"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/examples/recipes/recipetest"
	"github.com/surehook/surehook/internal/porttest"
	"github.com/surehook/surehook/receiver/receivertest"
)

// The function is started by the framework as the platform starts it: by its target's
// name. The framework's server ends with the process.
func TestReceives(t *testing.T) {
	host, port, err := net.SplitHostPort(porttest.Reserved(t))
	require.NoError(t, err)
	t.Setenv("FUNCTION_TARGET", "ReceiveWebhook")
	go func() { _ = funcframework.StartHostPort(host, port) }()
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", net.JoinHostPort(host, port))
		return err == nil && conn.Close() == nil
	}, 30*time.Second, 10*time.Millisecond)
	post := recipetest.PostTo(t, "http://"+net.JoinHostPort(host, port)+"/")

	bed := recipetest.New(t)
	t.Setenv("WEBHOOK_SECRET", bed.Secret.Reveal())
	t.Setenv("DATABASE_URL", "postgres://127.0.0.1:1/away?connect_timeout=1")
	snd := receivertest.NewSender(t, bed.Secret, nil)
	away := post(snd.Request(receivertest.NewEvent("account", "acc_1", 1)))
	require.Equal(t, http.StatusServiceUnavailable, away.Status, "the sender is to try again")

	t.Setenv("DATABASE_URL", bed.URL)
	recipetest.Check(t, bed, post)
}
