package receiver_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/signing"
)

// Every condition has its status and its constant body. An event that is not applied leaves
// the database as it was.
func TestAnswers(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		b, _ := onSQLite(t)
		testAnswers(t, b)
	})
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		testAnswers(t, onMemory())
	})
}

func testAnswers[Tx any](t *testing.T, b bed[Tx]) {
	snd := newSender(t)
	applied := newEvent(7)
	require.Equal(t, receiver.Applied, snd.Request(applied).Serve(b.receiver(t, nil).Handler(receiver.State(b.effect))).Result)
	require.Equal(t, state{Marker: true, Effects: 1, Version: 7}, b.state(t, applied))

	bad := func(err error) receiver.HandlerFunc[Tx] {
		return func(ctx context.Context, tx Tx, ev receiver.Event) error {
			return errors.Join(b.effect(ctx, tx, ev), err)
		}
	}
	panicking := func(ctx context.Context, tx Tx, ev receiver.Event) error {
		_ = b.effect(ctx, tx, ev)
		panic("at the disco")
	}
	const (
		unauthorized = `{"error":"Unauthorized"}`
		badRequest   = `{"error":"Bad Request"}`
		unavailable  = `{"error":"Service Unavailable"}`
	)
	for _, c := range []struct {
		name    string
		request func(ev receivertest.Event) *receivertest.Request
		cfg     receiver.Config
		handler receiver.HandlerFunc[Tx]
		inTx    receiver.InTx[Tx]
		store   dedup.Store[Tx]
		status  int
		body    string
		reason  receiver.Reason
	}{
		{name: "method", request: func(ev receivertest.Event) *receivertest.Request { return snd.Request(ev).Method("GET") },
			status: 405, body: `{"error":"Method Not Allowed"}`, reason: "method"},
		{name: "method with everything else wrong", request: func(ev receivertest.Event) *receivertest.Request {
			return snd.Request(ev).Method("PUT").Padded(5000).Without("Webhook-Timestamp").Header("Content-Type", "text/plain")
		}, cfg: receiver.Config{MaxBodyBytes: 100}, status: 405, reason: "method"},
		{name: "declared size", request: func(ev receivertest.Event) *receivertest.Request {
			return snd.Request(ev).Padded(1001).Header("Content-Type", "text/plain")
		}, cfg: receiver.Config{MaxBodyBytes: 1000}, status: 413, body: `{"error":"Request Entity Too Large"}`, reason: "too_large"},
		{name: "size read", request: func(ev receivertest.Event) *receivertest.Request { return snd.Request(ev).Padded(1001).Chunked() },
			cfg: receiver.Config{MaxBodyBytes: 1000}, status: 413, reason: "too_large"},
		{name: "default size", request: func(ev receivertest.Event) *receivertest.Request { return snd.Request(ev).Padded(1<<20 + 1).Chunked() },
			status: 413, reason: "too_large"},
		{name: "content type", request: func(ev receivertest.Event) *receivertest.Request {
			return snd.Request(ev).Header("Content-Type", "text/plain").Without("Webhook-Id")
		}, status: 415, body: `{"error":"Unsupported Media Type"}`, reason: "content_type"},
		{name: "charset", request: func(ev receivertest.Event) *receivertest.Request {
			return snd.Request(ev).Header("Content-Type", "application/json; charset=latin1")
		}, status: 415, reason: "content_type"},
		{name: "no content type", request: func(ev receivertest.Event) *receivertest.Request {
			return snd.Request(ev).Without("Content-Type")
		}, status: 415, reason: "content_type"},
		{name: "content encoding", request: func(ev receivertest.Event) *receivertest.Request {
			return snd.Request(ev).Header("Content-Encoding", "gzip")
		}, status: 415, reason: "content_encoding"},
		{name: "no timestamp", request: func(ev receivertest.Event) *receivertest.Request {
			return snd.Request(ev).Without("Webhook-Timestamp")
		}, status: 400, body: badRequest, reason: "header"},
		{name: "no signature", request: func(ev receivertest.Event) *receivertest.Request {
			return snd.Request(ev).Without("Webhook-Signature").Without("Webhook-Hmac-Sha256")
		}, status: 400, body: badRequest, reason: "header"},
		{name: "malformed timestamp", request: func(ev receivertest.Event) *receivertest.Request {
			return snd.Request(ev).Header("Webhook-Timestamp", "+1700000000")
		}, status: 400, reason: "header"},
		{name: "malformed signature", request: func(ev receivertest.Event) *receivertest.Request {
			return snd.Request(ev).Header("Webhook-Signature", "abc")
		}, status: 400, reason: "header"},
		{name: "repeated signature", request: func(ev receivertest.Event) *receivertest.Request {
			return snd.Request(ev).Repeated("Webhook-Signature")
		}, status: 400, reason: "header"},
		{name: "repeated timestamp", request: func(ev receivertest.Event) *receivertest.Request {
			return snd.Request(ev).Repeated("Webhook-Timestamp")
		}, status: 400, reason: "header"},
		{name: "repeated id", request: func(ev receivertest.Event) *receivertest.Request { return snd.Request(ev).Repeated("Webhook-Id") },
			status: 400, reason: "header"},
		{name: "repeated content type", request: func(ev receivertest.Event) *receivertest.Request {
			return snd.Request(ev).Repeated("Content-Type")
		}, status: 400, reason: "header"},
		{name: "truncated body", request: func(ev receivertest.Event) *receivertest.Request { return snd.Request(ev).Truncated() },
			status: 400, body: badRequest, reason: "truncated"},
		{name: "body that does not decode", request: func(ev receivertest.Event) *receivertest.Request {
			return snd.Raw(ev.ID, []byte(`{"id":"evt_1","type":"a"}`))
		}, status: 400, body: badRequest, reason: "decode"},
		{name: "empty body", request: func(ev receivertest.Event) *receivertest.Request { return snd.Raw(ev.ID, nil) },
			status: 400, reason: "decode"},
		{name: "past the window", request: func(ev receivertest.Event) *receivertest.Request {
			return snd.Request(ev).Skewed(-302 * time.Second)
		}, status: 401, body: unauthorized, reason: "window"},
		{name: "before the window", request: func(ev receivertest.Event) *receivertest.Request {
			return snd.Request(ev).Skewed(302 * time.Second)
		}, status: 401, body: unauthorized, reason: "window"},
		{name: "unknown key", request: func(ev receivertest.Event) *receivertest.Request { return snd.Request(ev).WrongSecret() },
			status: 401, body: unauthorized, reason: "signature"},
		{name: "tampered body", request: func(ev receivertest.Event) *receivertest.Request { return snd.Request(ev).Tampered() },
			status: 401, body: unauthorized, reason: "signature"},
		{name: "too slow", request: func(ev receivertest.Event) *receivertest.Request {
			return snd.Request(ev).Slow(5 * time.Millisecond)
		}, cfg: receiver.Config{Timeout: 30 * time.Millisecond}, status: 408, body: `{"error":"Request Timeout"}`, reason: "slow"},
		{name: "no scope", cfg: receiver.Config{ScopeOf: func(signing.Verified) string { return "" }},
			status: 500, reason: "scope"},
		{name: "ScopeOf panics", cfg: receiver.Config{ScopeOf: func(signing.Verified) string { panic("no") }},
			status: 500, reason: "scope"},
		{name: "apply failed", handler: bad(errors.New("no such customer")), status: 500, body: `{"error":"Internal Server Error"}`, reason: "apply"},
		{name: "apply panicked", handler: panicking, status: 500, body: `{"error":"Internal Server Error"}`, reason: "panic"},
		{name: "database away in apply", handler: bad(driver.ErrBadConn), status: 503, body: unavailable, reason: "database"},
		{name: "database away at begin", inTx: func(context.Context, func(Tx) error) error { return errors.New("connection refused") },
			status: 503, body: unavailable, reason: "database"},
		{name: "store fails at the marker", store: brokenStore[Tx]{b.store, "mark", errors.New("no such table")}, status: 503, reason: "database"},
		{name: "store fails at the version", store: brokenStore[Tx]{b.store, "advance", errors.New("no such table")}, status: 503, reason: "database"},
		{name: "serialization failure", store: brokenStore[Tx]{b.store, "advance", dedup.ErrRetryTx}, status: 503, body: unavailable, reason: "conflict"},
		{name: "apply out of time", handler: func(ctx context.Context, tx Tx, ev receiver.Event) error {
			err := b.effect(ctx, tx, ev)
			<-ctx.Done()
			return err
		}, cfg: receiver.Config{Timeout: time.Second}, status: 503, body: unavailable, reason: "timeout"}, // it gets to the handler in that time
		{name: "commit failed", inTx: func(ctx context.Context, fn func(Tx) error) error {
			err := b.inTx(ctx, func(tx Tx) error { return errors.Join(fn(tx), errLook) })
			if err.Error() == errLook.Error() {
				return errors.New("the connection was lost during the commit")
			}
			return err
		}, status: 503, body: unavailable, reason: "commit"},
		{name: "InTx that runs nothing", inTx: func(context.Context, func(Tx) error) error { return nil }, status: 503, reason: "database"},
		{name: "InTx that panics", inTx: func(context.Context, func(Tx) error) error { panic("no") }, status: 500, reason: "panic"},
		{name: "InTx that swallows errors", handler: bad(errors.New("no")), inTx: func(ctx context.Context, fn func(Tx) error) error {
			_ = b.inTx(ctx, fn)
			return nil
		}, status: 500, reason: "apply"},
		{name: "duplicate", request: func(receivertest.Event) *receivertest.Request { return snd.Request(applied) },
			handler: bad(errors.New("must not run")), status: 200, body: `{"result":"duplicate"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			ev := newEvent(8)
			req := snd.Request(ev)
			if c.request != nil {
				req = c.request(ev)
			}
			inTx, store, handler := b.inTx, dedup.Store[Tx](b.store), b.effect
			if c.inTx != nil {
				inTx = c.inTx
			}
			if c.store != nil {
				store = c.store
			}
			if c.handler != nil {
				handler = c.handler
			}
			var got receiver.Reason
			c.cfg.Hooks.Rejected = func(_ context.Context, err *receiver.Error) { got = err.Reason }
			c.cfg.Hooks.Failed = func(_ context.Context, _ receiver.Event, err *receiver.Error) { got = err.Reason }
			before, rows := b.state(t, ev), b.rows(t)
			require.Equal(t, state{Version: 7}, before)

			answer := req.Serve(newReceiver(t, inTx, store, &c.cfg).Handler(receiver.State(handler)))

			require.Equal(t, c.status, answer.Status)
			require.Equal(t, c.reason, got)
			if c.body != "" {
				require.Equal(t, c.body, string(answer.Body))
			}
			require.Equal(t, "application/json", answer.Header.Get("Content-Type"))
			require.Equal(t, c.status == 405, answer.Header.Get("Allow") == http.MethodPost)
			require.Equal(t, c.status == 503, answer.Header.Get("Retry-After") == "5")
			require.Equal(t, before, b.state(t, ev))
			require.Equal(t, rows, b.rows(t))
			require.Equal(t, state{Marker: true, Effects: 1, Version: 7}, b.state(t, applied))
		})
	}
	// The requests above were refused for this reason alone.
	ev := newEvent(8)
	h := b.receiver(t, &receiver.Config{MaxBodyBytes: 1000}).Handler(receiver.State(b.effect))
	answer := snd.Request(ev).Padded(1000).Chunked().Header("Content-Type", "application/json; charset=UTF-8").Skewed(-298 * time.Second).Serve(h)
	require.Equal(t, `{"result":"applied"}`, string(answer.Body))
	require.Equal(t, state{Marker: true, Effects: 1, Version: 8}, b.state(t, ev))

	stale := newEvent(8)
	answer = snd.Request(stale).Serve(h)
	require.Equal(t, 200, answer.Status)
	require.Equal(t, `{"result":"stale"}`, string(answer.Body))
	require.Equal(t, state{Marker: true, Version: 8}, b.state(t, stale))
	require.Equal(t, receiver.Duplicate, snd.Request(stale).Serve(h).Result)

	final := newEvent(9)
	failing := b.receiver(t, nil).Handler(receiver.State(bad(receiver.Permanent(errors.New("no such customer")))))
	answer = snd.Request(final).Serve(failing)
	require.Equal(t, 200, answer.Status)
	require.Equal(t, `{"result":"dead_lettered"}`, string(answer.Body))
	require.Equal(t, state{Marker: true, Version: 8, DeadLetter: true}, b.state(t, final))
	require.Equal(t, receiver.Duplicate, snd.Request(final).Serve(failing).Result)
}

// brokenStore fails at one step. It is no dedup.DeadLetters.
type brokenStore[Tx any] struct {
	dedup.Store[Tx]
	at  string
	err error
}

func (s brokenStore[Tx]) Mark(ctx context.Context, tx Tx, scope, id string, at time.Time) (bool, error) {
	if s.at == "mark" {
		return false, s.err
	}
	return s.Store.Mark(ctx, tx, scope, id, at)
}

func (s brokenStore[Tx]) Advance(ctx context.Context, tx Tx, scope string, obj dedup.Object, version int64) (bool, error) {
	if s.at == "advance" {
		return false, s.err
	}
	return s.Store.Advance(ctx, tx, scope, obj, version)
}

func TestContentTypes(t *testing.T) {
	b := onMemory()
	h := b.receiver(t, nil).Handler(receiver.State(b.effect))
	for _, text := range []string{
		"application/json", "Application/JSON", "application/json;", "application/json; profile=x", `application/json ; charset="UTF-8"`, "application/json;charset=utf8",
	} {
		require.Equal(t, 200, newSender(t).Request(newEvent(1)).Header("Content-Type", text).Serve(h).Status, text)
	}
	// Somebody without a secret can send a header of a megabyte, with very many parameters.
	long := "application/json; profile=" + strings.Repeat("x", 1024)
	require.Equal(t, 415, newSender(t).Request(newEvent(1)).Header("Content-Type", long).Serve(h).Status)
}

// The window ends after 300 s on both sides, to the second.
func TestWindow(t *testing.T) {
	b, _ := onSQLite(t)
	now := time.Date(2026, 1, 2, 3, 4, 5, 999_000_000, time.UTC)
	verifier := newVerifier(t, &signing.VerifierConfig{Now: func() time.Time { return now }})
	rcv, err := receiver.New(verifier, b.inTx, b.store, "default", &receiver.Config{Logger: new(buffer).logger()})
	require.NoError(t, err)
	snd := newSender(t)
	for i, c := range []struct {
		skew   time.Duration
		status int
	}{{-300, 200}, {-301, 401}, {300, 200}, {301, 401}} {
		ev := newEvent(int64(i + 1))
		answer := snd.Request(ev).At(now).Skewed(c.skew * time.Second).Serve(rcv.Handler(receiver.State(b.effect)))
		require.Equal(t, c.status, answer.Status, c.skew)
		require.Equal(t, c.status == 200, b.state(t, ev).Marker)
	}
}

// If a scheme cannot decide, the answer is neither 2xx nor 401.
func TestSchemeThatFails(t *testing.T) {
	b, _ := onSQLite(t)
	for _, at := range []string{"precheck", "verify"} {
		verifier := newVerifier(t, &signing.VerifierConfig{Schemes: []signing.Scheme{failingScheme{at: at}}})
		rcv, err := receiver.New(verifier, b.inTx, b.store, "default", &receiver.Config{Logger: new(buffer).logger()})
		require.NoError(t, err)
		answer := newSender(t).Request(newEvent(1)).Serve(rcv.Handler(receiver.State(b.effect)))
		require.Equal(t, 503, answer.Status, at)
		require.Equal(t, "5", answer.Header.Get("Retry-After"))
		require.Zero(t, b.rows(t))
	}
}

type failingScheme struct {
	signing.TimestampBody
	at     string
	panics any
}

func (f failingScheme) fail() error {
	if f.panics != nil {
		panic(f.panics)
	}
	return errors.New("the secrets cannot be reached")
}

func (f failingScheme) Precheck(http.Header, time.Time, time.Duration) error {
	if f.at == "precheck" {
		return f.fail()
	}
	return nil
}

func (f failingScheme) Verify(signing.Message, *signing.Keyring, time.Time, time.Duration) (signing.Verified, error) {
	return signing.Verified{}, f.fail()
}

// CheckKeys panics at the keys of the tenant, and not at those of nobody.
func (f failingScheme) CheckKeys(keys *signing.Keyring) error {
	if f.at == "keys" && keys.Only("key_1", time.Now()) != nil {
		return f.fail()
	}
	return nil
}

// A panic in a scheme of one's own is logged with its stack, and ends nothing but its request.
func TestSchemeThatPanics(t *testing.T) {
	keys, err := signing.NewKeyring(signing.Key{ID: "key_1", Secret: testSecret})
	require.NoError(t, err)
	for _, c := range []struct {
		at       string
		secrets  bool
		envelope *receiver.Envelope
		status   int
		reason   receiver.Reason
	}{
		{"precheck", false, nil, 500, receiver.ReasonPanic},
		{"verify", false, nil, 500, receiver.ReasonPanic},
		{"verify", false, &receiver.Envelope{}, 500, receiver.ReasonPanic},
		{"precheck", true, nil, 500, receiver.ReasonPanic},
		{"verify", true, nil, 500, receiver.ReasonPanic},
		{"keys", true, nil, 503, receiver.ReasonSecrets}, // in the goroutine of a lookup
	} {
		t.Run(fmt.Sprint(c.at, c.secrets, c.envelope != nil), func(t *testing.T) {
			b, _ := onSQLite(t)
			cfg := signing.VerifierConfig{Schemes: []signing.Scheme{failingScheme{at: c.at, panics: "at the disco"}}}
			scope, verifier := "default", receiver.Verifier(nil)
			if c.secrets {
				scope = ""
				verifier, err = receiver.NewSecrets(func(signing.Message) string { return "tenant" }, func(context.Context, string) (receiver.Keyholder, error) {
					return receiver.Keyholder{Scope: "default", Keys: keys}, nil
				}, &receiver.SecretsConfig{Verifier: cfg})
				require.NoError(t, err)
			} else {
				verifier = newVerifier(t, &cfg)
			}
			var reason receiver.Reason
			log := new(buffer)
			rcv, err := receiver.New(verifier, b.inTx, b.store, scope, &receiver.Config{
				Logger: log.logger(), Envelope: c.envelope,
				Hooks: receiver.Hooks{Rejected: func(_ context.Context, err *receiver.Error) { reason = err.Reason }},
			})
			require.NoError(t, err)
			for range 2 {
				answer := newSender(t).Request(newEvent(1)).Serve(rcv.Handler(receiver.State(b.effect)))
				require.Equal(t, c.status, answer.Status)
				require.Equal(t, c.reason, reason)
			}
			require.Contains(t, log.String(), "answers_test.go", "the stack")
			require.NotContains(t, log.String(), "disco")
			require.Zero(t, b.rows(t))
		})
	}
	b, _ := onSQLite(t)
	verifier := newVerifier(t, &signing.VerifierConfig{Schemes: []signing.Scheme{failingScheme{at: "verify", panics: http.ErrAbortHandler}}})
	rcv, err := receiver.New(verifier, b.inTx, b.store, "default", &receiver.Config{Logger: new(buffer).logger()})
	require.NoError(t, err)
	require.PanicsWithValue(t, http.ErrAbortHandler, func() { newSender(t).Request(newEvent(1)).Serve(rcv.Handler(receiver.State(b.effect))) })
}

// If a scheme covers the id, the header and the body must agree. If it does not, nobody
// believes the header.
func TestSignedID(t *testing.T) {
	b, _ := onSQLite(t)
	snd := newSender(t)
	verifier := newVerifier(t, &signing.VerifierConfig{Schemes: []signing.Scheme{signing.StandardWebhooks{}}})
	var reason receiver.Reason
	rcv, err := receiver.New(verifier, b.inTx, b.store, "default", &receiver.Config{
		Logger: new(buffer).logger(),
		Hooks:  receiver.Hooks{Rejected: func(_ context.Context, err *receiver.Error) { reason = err.Reason }},
	})
	require.NoError(t, err)
	ev, other := newEvent(1), newEvent(1)
	body := snd.Request(ev).Message().Body

	answer := snd.Raw(other.ID, body).Serve(rcv.Handler(receiver.State(b.effect)))
	require.Equal(t, 400, answer.Status)
	require.Equal(t, receiver.ReasonIDMismatch, reason)
	require.Zero(t, b.rows(t))

	// Without Standard Webhooks' header the other one decides, which does not cover the id.
	answer = snd.Raw(other.ID, body).Without("Webhook-Signature").Serve(b.receiver(t, nil).Handler(receiver.State(b.effect)))
	require.Equal(t, 200, answer.Status)
	require.True(t, b.state(t, ev).Marker)
	require.False(t, b.state(t, other).Marker)
}

// SQLite itself says that it is locked.
func TestLockWaitOver(t *testing.T) {
	b, db := onSQLite(t)
	var path string
	require.NoError(t, db.QueryRow("SELECT file FROM pragma_database_list WHERE name = 'main'").Scan(&path))
	impatient := openSQLite(t, path, "&_pragma=busy_timeout(1)")
	tx, err := db.Begin()
	require.NoError(t, err)
	log := new(buffer)
	rcv := newReceiver(t, receiver.SQL(impatient, nil), b.store, &receiver.Config{Logger: log.logger()})
	answer := newSender(t).Request(newEvent(1)).Serve(rcv.Handler(receiver.State(b.effect)))
	require.Equal(t, 503, answer.Status)
	require.Contains(t, log.String(), "reason=conflict")
	require.NoError(t, tx.Rollback())
	require.Zero(t, b.rows(t))
}

// The error goes to the log and nowhere else. Neither secrets nor bodies go to the log.
func TestLogHasReasonsAndNoPayload(t *testing.T) {
	b, _ := onSQLite(t)
	log := new(buffer)
	rcv := b.receiver(t, &receiver.Config{Logger: log.logger()})
	snd := newSender(t)
	ev := newEvent(1)
	ev.Data = map[string]string{"iban": "DE0012345678"}
	h := rcv.Handler(receiver.State(func(context.Context, *sql.Tx, receiver.Event) error { panic(ev.Data) }))

	answers := []receivertest.Answer{
		snd.Request(ev).Serve(h),
		snd.Request(ev).Tampered().Serve(h),
		snd.Request(ev).Skewed(-time.Hour).Serve(h),
	}
	require.Equal(t, answers[1].Body, answers[2].Body)
	text := log.String()
	require.Contains(t, text, "reason=panic")
	require.Contains(t, text, "answers_test.go", "the stack")
	require.Contains(t, text, "event_id="+ev.ID)
	require.Contains(t, text, "reason=signature")
	require.Contains(t, text, "reason=window")
	require.Equal(t, 3, strings.Count(text, "\n"), "one record for each request")
	require.NotContains(t, text, "DE0012345678")
	require.NotContains(t, text, testSecret.Reveal())
	require.NotContains(t, text, snd.Request(ev).Message().Header.Get("Webhook-Hmac-Sha256"))
}
