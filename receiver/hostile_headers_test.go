package receiver_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/signing"
)

// A request with too many signatures, in one header or in thousands, is refused without a
// read of its body, and costs no more memory than it brought.
func TestThousandsOfSignatures(t *testing.T) {
	b := onMemory()
	verifier := newVerifier(t, &signing.VerifierConfig{Schemes: []signing.Scheme{signing.StandardWebhooks{}}})
	rcv, err := receiver.New(verifier, b.inTx, b.store, "default", &receiver.Config{Logger: new(buffer).logger()})
	require.NoError(t, err)
	h := rcv.Handler(receiver.State(b.effect))
	unread := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = unreadable{t}
		h.ServeHTTP(w, r)
	})
	snd := newSender(t)
	const n = 21_000
	one := "v1," + strings.Repeat("A", 43) + "="
	for name, req := range map[string]*receivertest.Request{
		"in one header":       snd.Request(newEvent(1)).Header("Webhook-Signature", strings.Repeat(one+" ", n)+one),
		"with commas":         snd.Request(newEvent(1)).Header("Webhook-Signature", strings.Repeat(one+",", n)+one),
		"of another version":  snd.Request(newEvent(1)).Header("Webhook-Signature", strings.Repeat("v9,x ", n)+"v9,x"),
		"two headers":         snd.Request(newEvent(1)).Repeated("Webhook-Signature"),
		"two times":           snd.Request(newEvent(1)).Repeated("Webhook-Timestamp"),
		"two ids":             snd.Request(newEvent(1)).Repeated("Webhook-Id"),
		"a thousand headers":  manyTimes(snd.Request(newEvent(1)), 1000),
		"a timestamp's flood": snd.Request(newEvent(1)).Header("Webhook-Timestamp", strings.Repeat("1", n)),
	} {
		require.Equal(t, 400, req.Serve(unread).Status, name)
	}
	require.Equal(t, 200, snd.Request(newEvent(1)).Serve(h).Status)
}

func manyTimes(r *receivertest.Request, n int) *receivertest.Request {
	for range n {
		r.Repeated("Webhook-Signature")
	}
	return r
}
