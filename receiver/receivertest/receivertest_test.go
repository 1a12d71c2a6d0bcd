package receivertest_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/signing"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func setup(t *testing.T) (*receivertest.Sender, *signing.Verifier) {
	t.Helper()
	secret := signing.GenerateSecret()
	keys, err := signing.NewKeyring(signing.Key{Secret: secret})
	require.NoError(t, err)
	clock := func() time.Time { return now }
	verifier, err := signing.NewVerifier(keys, &signing.VerifierConfig{Now: clock})
	require.NoError(t, err)
	return receivertest.NewSender(t, secret, &receivertest.SenderConfig{Now: clock}), verifier
}

func TestSigning(t *testing.T) {
	snd, verifier := setup(t)
	ev := receivertest.NewEvent("subscriber", "sub_1", 7)
	for name, c := range map[string]struct {
		request *receivertest.Request
		want    error
	}{
		"honest":        {snd.Request(ev), nil},
		"padded":        {snd.Request(ev).Padded(5000), nil},
		"raw":           {snd.Raw("evt_1", []byte("anything")), nil},
		"attempt":       {snd.Request(ev).Attempt(4), nil},
		"at":            {snd.Request(ev).At(now.Add(-299 * time.Second)), nil},
		"late":          {snd.Request(ev).At(now.Add(-time.Hour)), signing.ErrTimestampOutsideWindow},
		"skewed":        {snd.Request(ev).Skewed(time.Hour), signing.ErrTimestampOutsideWindow},
		"wrong secret":  {snd.Request(ev).WrongSecret(), signing.ErrSignatureMismatch},
		"tampered":      {snd.Request(ev).Tampered(), signing.ErrSignatureMismatch},
		"without":       {snd.Request(ev).Without("Webhook-Timestamp"), signing.ErrMissingHeader},
		"repeated":      {snd.Request(ev).Repeated("Webhook-Timestamp"), signing.ErrRepeatedHeader},
		"other header":  {snd.Request(ev).Header("Webhook-Timestamp", "x"), signing.ErrMalformedHeader},
		"empty and odd": {snd.Raw("evt_1", nil).Tampered(), nil},
	} {
		_, err := verifier.Verify(c.request.Message())
		if c.want == nil {
			require.NoError(t, err, name)
		} else {
			require.ErrorIs(t, err, c.want, name)
		}
	}
	require.Equal(t, snd.Request(ev).Message().Body, snd.Request(ev).Message().Body, "the same bytes at every attempt")
}

func TestSending(t *testing.T) {
	snd, _ := setup(t)
	ev := receivertest.NewEvent("subscriber", "sub_1", 7)
	var (
		got  *http.Request
		body []byte
		fail error
	)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, fail = io.ReadAll(r.Body)
		_, _ = w.Write([]byte(`{"result":"stale"}`))
	})
	srv := httptest.NewServer(h)
	defer srv.Close()
	whole := snd.Request(ev).Message().Body
	for name, send := range map[string]func(*receivertest.Request) receivertest.Answer{
		"serve": func(r *receivertest.Request) receivertest.Answer { return r.Serve(h) },
		"post": func(r *receivertest.Request) receivertest.Answer {
			a, err := r.Post(t.Context(), srv.URL)
			require.NoError(t, err)
			return a
		},
	} {
		a := send(snd.Request(ev))
		require.Equal(t, 200, a.Status, name)
		require.Equal(t, receiver.Stale, a.Result)
		require.Equal(t, "POST", got.Method)
		require.Equal(t, int64(len(whole)), got.ContentLength)
		require.Equal(t, "1", got.Header.Get("Webhook-Attempt"))
		require.Equal(t, whole, body)

		send(snd.Request(ev).Method("PUT").Chunked())
		require.Equal(t, "PUT", got.Method)
		require.Equal(t, int64(-1), got.ContentLength)
		require.Equal(t, whole, body)

		send(snd.Request(ev).Truncated())
		require.ErrorIs(t, fail, io.ErrUnexpectedEOF, name)
		require.Equal(t, whole[:len(whole)/2], body)

		start := time.Now()
		send(snd.Raw("evt_1", []byte("0123456789")).Slow(time.Millisecond))
		require.GreaterOrEqual(t, time.Since(start), 10*time.Millisecond)
		require.Equal(t, "0123456789", string(body))
	}
	require.Equal(t, "/webhooks", snd.Request(ev).Message().URL)
	elsewhere := receivertest.NewSender(t, signing.GenerateSecret(), &receivertest.SenderConfig{Path: "/hooks/billing?v=2"})
	elsewhere.Request(ev).Serve(h)
	require.Equal(t, "/hooks/billing", got.URL.Path)
	require.Equal(t, "v=2", got.URL.RawQuery)
	require.Equal(t, "/hooks/billing?v=2", got.RequestURI)
	require.Equal(t, "/hooks/billing?v=2", elsewhere.Request(ev).Message().URL)
	require.PanicsWithValue(t, `receivertest: SenderConfig.Path is "hooks": it must begin with a slash, such as /webhooks`, func() {
		receivertest.NewSender(&reporting{}, signing.GenerateSecret(), &receivertest.SenderConfig{Path: "hooks"})
	})

	_, err := snd.Request(ev).Truncated().Post(t.Context(), "https://localhost")
	require.ErrorContains(t, err, "http URL")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = snd.Request(ev).Post(ctx, srv.URL)
	require.ErrorIs(t, err, context.Canceled)
}

func TestShuffled(t *testing.T) {
	var events []receivertest.Event
	for v := range int64(10) {
		events = append(events, receivertest.NewEvent("subscriber", "sub_1", v+1))
	}
	out := receivertest.Shuffled(1, 3, events...)
	require.Equal(t, out, receivertest.Shuffled(1, 3, events...))
	require.NotEqual(t, out, receivertest.Shuffled(2, 3, events...))
	seen := map[string]int{}
	for _, ev := range out {
		seen[ev.ID]++
	}
	require.Len(t, seen, 10)
	for _, n := range seen {
		require.Equal(t, 3, n)
	}
}
