package post

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/http2"
	"github.com/surehook/surehook/signing"
)

// Every status has its class, and the answer of a failure is kept. A Retry-After that is a date
// is taken relative to when the answer came.
func TestConclude(t *testing.T) {
	key, err := signing.NewKeyring(signing.Key{ID: "1", Secret: signing.GenerateSecret()})
	require.NoError(t, err)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := New(Config{Timeout: time.Minute, Places: 4, Unguarded: http.DefaultTransport, Schemes: signing.DefaultSchemes(), Now: func() time.Time { return now }})
	for status, want := range map[int]sender.Class{
		99: sender.ClassProtocol, 100: sender.ClassStatus, 199: sender.ClassStatus, 200: sender.ClassNone, 299: sender.ClassNone, 300: sender.ClassRedirect,
		304: sender.ClassRedirect, 399: sender.ClassRedirect, 400: sender.ClassStatus, 599: sender.ClassStatus, 999: sender.ClassStatus, 1000: sender.ClassProtocol,
	} {
		at := now.Add(-time.Hour) // the database's clock is not ours
		x, err := p.Prepare(&Request{URL: &url.URL{Scheme: "http", Host: "endpoint"}, Event: "evt_1", Attempt: 1, At: at, Body: []byte("{}"), Keyring: key}, nil)
		require.NoError(t, err)
		now = now.Add(5 * time.Second)
		a := x.Conclude(t.Context(), &http.Response{
			StatusCode: status, Header: http.Header{"Retry-After": {at.Add(time.Minute).Format(http.TimeFormat)}}, Body: io.NopCloser(bytes.NewReader([]byte("why"))),
		}, nil, nil)
		x.End()
		require.Equal(t, want, a.Class, status)
		require.Equal(t, 5*time.Second, a.Duration, status)
		if want == sender.ClassProtocol {
			continue
		}
		require.Equal(t, 55*time.Second, a.RetryAfter, status)
		require.Equal(t, want != sender.ClassNone, len(a.Snippet) > 0, status)
	}
}

// Errors that only the caller's own transport returns have their classes, too.
func TestClassesOfOtherTransports(t *testing.T) {
	over, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want sender.Class
	}{
		{t.Context(), errors.New("http: server closed idle connection"), sender.ClassReset},
		{t.Context(), errors.New("http2: server sent GOAWAY and closed the connection; LastStreamID=1, ErrCode=NO_ERROR"), sender.ClassReset},
		{t.Context(), errors.New("stream error: stream ID 1; INTERNAL_ERROR; received from peer"), sender.ClassReset},
		{t.Context(), http2.ErrReset, sender.ClassReset},
		{t.Context(), &net.OpError{Op: "read", Err: net.ErrClosed}, sender.ClassReset},
		{t.Context(), x509.CertificateInvalidError{Reason: x509.NotAuthorizedToSign}, sender.ClassTLS},
		{t.Context(), x509.UnknownAuthorityError{}, sender.ClassTLS},
		{over, errors.New("given up"), sender.ClassTimeout},
		{t.Context(), errors.New("malformed"), sender.ClassProtocol},
	} {
		class, _ := classify(c.ctx, c.err, false)
		require.Equal(t, c.want, class, c.err)
	}
}

// An attempt that is given up before its time says nothing of its proxy.
func TestGivenUpAttemptBlamesNoProxy(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://endpoint/", http.NoBody)
	require.NoError(t, err)
	var p proxy
	got := p.judge(r, &proxyError{text: "the sender's proxy cannot be reached", failed: true, err: ctx.Err()}, true)
	require.EqualError(t, got, "the sender's proxy cannot be reached")
	require.False(t, byProxy(got))
	require.Zero(t, p.watch)
}

// A subscription's own time shortens an attempt, and never lengthens it.
func TestTimeoutOfARequest(t *testing.T) {
	key, err := signing.NewKeyring(signing.Key{ID: "1", Secret: signing.GenerateSecret()})
	require.NoError(t, err)
	p := New(Config{Timeout: 10 * time.Second, Places: 4, Unguarded: http.DefaultTransport, Schemes: signing.DefaultSchemes(), Now: time.Now})
	for own, want := range map[time.Duration]time.Duration{0: 10 * time.Second, 3 * time.Second: 3 * time.Second, 30 * time.Second: 10 * time.Second} {
		x, err := p.Prepare(&Request{URL: &url.URL{Scheme: "http", Host: "endpoint"}, Event: "evt_1", Attempt: 1, At: time.Now(), Keyring: key, Timeout: own}, nil)
		require.NoError(t, err)
		x.End()
		require.Equal(t, want, x.Timeout())
	}
}
