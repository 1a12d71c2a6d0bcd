package receiver_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/signing"
)

// Bytes go through the same steps as requests, and get the same answers.
func TestReceiveAnswersLikeHandler(t *testing.T) {
	b, _ := onSQLite(t)
	rcv := b.receiver(t, &receiver.Config{MaxBodyBytes: 1000})
	snd := newSender(t)
	applied, stale := newEvent(2), newEvent(1)
	for _, req := range []struct {
		status int
		send   func(take func(m signing.Message))
	}{
		{200, func(take func(signing.Message)) { take(snd.Request(applied).Message()) }},
		{200, func(take func(signing.Message)) { take(snd.Request(applied).Message()) }},
		{200, func(take func(signing.Message)) { take(snd.Request(stale).Message()) }},
		{400, func(take func(signing.Message)) { take(snd.Request(stale).Repeated("Webhook-Timestamp").Message()) }},
		{400, func(take func(signing.Message)) { take(snd.Raw("evt_1", []byte("{}")).Message()) }},
		{401, func(take func(signing.Message)) { take(snd.Request(stale).WrongSecret().Message()) }},
		{405, func(take func(signing.Message)) { take(snd.Request(stale).Method("GET").Message()) }},
		{413, func(take func(signing.Message)) { take(snd.Request(stale).Padded(1001).Message()) }},
		{415, func(take func(signing.Message)) { take(snd.Request(stale).Without("Content-Type").Message()) }},
	} {
		req.send(func(m signing.Message) {
			res, err := rcv.Receive(t.Context(), m, receiver.State(b.effect))
			if err != nil {
				var e *receiver.Error
				require.ErrorAs(t, err, &e)
				require.Equal(t, req.status, e.Status())
			}
			a := receiver.AnswerTo(res, err)
			require.Equal(t, req.status, a.Status, string(a.Body))
		})
	}
	require.Equal(t, 1, b.effects(t, applied.ID))
	require.Zero(t, b.effects(t, stale.ID))
}

// Gateways write the names of headers in their own way.
func TestReceiveTakesHeadersInAnyCase(t *testing.T) {
	b, _ := onSQLite(t)
	rcv := b.receiver(t, nil)
	m := newSender(t).Request(newEvent(1)).Message()
	lower := make(http.Header)
	for name, values := range m.Header {
		lower[strings.ToLower(name)] = values
	}
	lower["Content-type"] = lower["content-type"]
	m.Header = lower
	_, err := rcv.Receive(t.Context(), m, receiver.State(b.effect))
	require.Equal(t, 400, receiver.AnswerTo("", err).Status, "repeated in two spellings")
	delete(lower, "Content-type")
	res, err := rcv.Receive(t.Context(), m, receiver.State(b.effect))
	require.NoError(t, err)
	require.Equal(t, receiver.Applied, res)
}

func TestAnswerToAnotherError(t *testing.T) {
	require.Equal(t, 500, receiver.AnswerTo("", errLook).Status)
}

func TestBodyOfAnotherSender(t *testing.T) {
	b := onMemory()
	_, err := b.receiver(t, nil).Receive(t.Context(), newSender(t).Raw("evt_1", []byte(`{"id":"evt_1","object":"event","type":"invoice.paid"}`)).Message(), receiver.State(b.effect))
	var failure *receiver.Error
	require.ErrorAs(t, err, &failure)
	require.Equal(t, receiver.ReasonDecode, failure.Reason)
	require.ErrorContains(t, err, "need Config.Envelope")
}
