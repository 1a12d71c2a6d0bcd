package sender_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/sendertest"
)

// The same over real sockets: a healthy subscription's events arrive while three
// hundred connections hang. The bound is the attempts' own: were the healthy ones
// to wait for the hanging, it would be for their timeout.
func TestHangingEndpointsOverTheWire(t *testing.T) {
	const hanging, events, timeout = 300, 50, 10 * time.Second
	b := newBed(t)
	hang := sendertest.NewEndpoint(t, sendertest.Hang())
	came := make(chan time.Time, events+20)
	healthy := sendertest.NewEndpoint(t, sendertest.Func(func(http.ResponseWriter, *http.Request) { came <- time.Now() }))
	b.subscribe("sub_healthy", healthy.URL())
	for i := range hanging {
		b.subscribe(fmt.Sprintf("sub_%d", i%30), hang.URL())
	}
	b.start(b.dispatcher(sender.DispatcherConfig{Timeout: timeout}))
	for i := range 30 {
		b.publish(fmt.Sprintf("sub_%d", i))
	}
	_, err := hang.WaitFor(t.Context(), 10)
	require.NoError(t, err)

	var took []time.Duration
	for range events {
		began := time.Now()
		b.publish("sub_healthy")
		took = append(took, (<-came).Sub(began))
	}
	slices.Sort(took)
	t.Logf("median %v, slowest %v", took[len(took)/2], took[len(took)-1])
	require.Less(t, took[len(took)-1], timeout/2)
	hang.Close() // or the drain would wait for its answers
}
