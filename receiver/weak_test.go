package receiver_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/vendors"
)

// Telegram signs nothing. A receiver that says that it knows takes its updates, each once,
// and no type or id of theirs unless it says so, too.
func TestTelegram(t *testing.T) {
	v, found := vendors.Find("telegram")
	require.True(t, found)
	_, err := v.Scheme("")
	require.ErrorContains(t, err, "signing.NewUnsignedToken")
	scheme, err := signing.NewUnsignedToken(v.Description)
	require.NoError(t, err)
	keys, err := signing.NewKeyring(signing.Key{Secret: foreignSecret})
	require.NoError(t, err)
	verifier, err := signing.NewVerifier(keys, &signing.VerifierConfig{
		Schemes: []signing.Scheme{scheme}, Deduplicated: !v.SignsTime(), UnsignedBody: v.UnsignedBody(),
	})
	require.NoError(t, err)
	b, _ := onSQLite(t)
	log := new(buffer)
	rcv, err := receiver.New(verifier, b.inTx, b.store, "telegram", &receiver.Config{Envelope: receiver.VendorEnvelope(v), Logger: log.logger()})
	require.NoError(t, err)
	post := func(token, body string) receiver.Answer {
		m := signing.Message{Method: http.MethodPost, Body: []byte(body), Header: http.Header{
			"Content-Type": {"application/json"}, "X-Telegram-Bot-Api-Secret-Token": {token},
		}}
		return receiver.AnswerTo(rcv.Receive(t.Context(), m, receiver.Fact(b.effect)))
	}
	const first, second = `{"update_id":10000,"message":{"text":"/start"}}`, `{"update_id":10001,"message":{"text":"/start"}}`
	for _, c := range []struct {
		token, body string
		status      int
		want        string
	}{
		{foreignSecret.Reveal(), first, 200, `{"result":"applied"}`},
		{foreignSecret.Reveal(), first, 200, `{"result":"duplicate"}`},
		{foreignSecret.Reveal(), second, 200, `{"result":"applied"}`},
		{foreignSecret.Reveal() + "x", second, 401, `{"error":"Unauthorized"}`},
		{"", second, 400, `{"error":"Bad Request"}`},
	} {
		a := post(c.token, c.body)
		require.Equal(t, c.status, a.Status)
		require.JSONEq(t, c.want, string(a.Body))
	}
	require.Equal(t, 4, b.rows(t), "two markers and two effects")
	require.NotContains(t, log.String(), foreignSecret.Reveal())
}
