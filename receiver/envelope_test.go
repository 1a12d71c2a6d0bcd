package receiver_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/signing"
)

const (
	form       = "application/x-www-form-urlencoded"
	stripeBody = `{"id":"evt_1","object":"event","created":1700000000,"type":"invoice.paid","data":{"object":{"id":"in_1","total":7}}}`
	githubBody = `{"action":"opened","number":1}`
)

var foreignSecret = func() signing.Secret {
	s, err := signing.ParseTextSecret("a secret as others issue them")
	if err != nil {
		panic(err)
	}
	return s
}()

func twilio() signing.Scheme {
	s, err := signing.NewTwilio("https://example.com/webhooks")
	if err != nil {
		panic(err)
	}
	return s
}

// foreign returns a receiver of another sender's events, and this sender.
func foreign(t testing.TB, b bed[*sql.Tx], scheme signing.Scheme, scope string, cfg receiver.Config, contentType string) (*receiver.Receiver[*sql.Tx], *receivertest.Sender) {
	t.Helper()
	secret := foreignSecret
	if _, ok := scheme.(signing.StandardWebhooks); ok {
		secret = testSecret
	}
	keys, err := signing.NewKeyring(signing.Key{ID: "theirs", Secret: secret})
	require.NoError(t, err)
	verifier, err := signing.NewVerifier(keys, &signing.VerifierConfig{Schemes: []signing.Scheme{scheme}, Deduplicated: true})
	require.NoError(t, err)
	cfg.Logger = new(buffer).logger()
	rcv, err := receiver.New(verifier, b.inTx, b.store, scope, &cfg)
	require.NoError(t, err)
	return rcv, receivertest.NewSender(t, secret, &receivertest.SenderConfig{Schemes: []signing.Scheme{scheme}, ContentType: contentType})
}

func TestForeignEnvelopes(t *testing.T) {
	seconds := func(n int64) time.Time { return time.Unix(n, 0).UTC() }
	for _, c := range []struct {
		name        string
		scheme      signing.Scheme
		envelope    *receiver.Envelope
		contentType string
		header      map[string]string // not signed
		id          string            // in a header, signed or not
		body        string
		want        receiver.Event // without the fields that every event has
		answer      string
	}{
		{
			name: "Stripe", scheme: signing.Stripe(), envelope: &receiver.Envelope{DataField: "data.object"}, body: stripeBody,
			want: receiver.Event{ID: "evt_1", Type: "invoice.paid", OccurredAt: seconds(1700000000), Data: json.RawMessage(`{"id":"in_1","total":7}`)},
		},
		{
			name: "GitHub", scheme: signing.GitHub(), envelope: &receiver.Envelope{UnsignedType: true}, body: githubBody,
			header: map[string]string{"X-GitHub-Event": "pull_request"},
			want:   receiver.Event{ID: "sha256-fe0e7604531e0d90c365a756878c17f6266c65c90f1373f89b740cb192b8e373", Type: "pull_request", Data: json.RawMessage(githubBody)},
		},
		{
			name: "GitHub without its type", scheme: signing.GitHub(), envelope: &receiver.Envelope{}, body: githubBody,
			header: map[string]string{"X-GitHub-Event": "pull_request"},
			want:   receiver.Event{ID: "sha256-fe0e7604531e0d90c365a756878c17f6266c65c90f1373f89b740cb192b8e373", Type: receiver.Untyped, Data: json.RawMessage(githubBody)},
		},
		{
			name: "Shopify", scheme: signing.Shopify(), envelope: &receiver.Envelope{UnsignedType: true}, body: githubBody,
			header: map[string]string{"X-Shopify-Topic": "orders/create"},
			want:   receiver.Event{ID: "sha256-fe0e7604531e0d90c365a756878c17f6266c65c90f1373f89b740cb192b8e373", Type: "orders.create", Data: json.RawMessage(githubBody)},
		},
		{
			name: "Standard Webhooks", scheme: signing.StandardWebhooks{}, envelope: &receiver.Envelope{DataField: "data"}, id: "msg_1",
			body: `{"type":"user.created","timestamp":"2026-01-02T03:04:05Z","data":{"id":1}}`,
			want: receiver.Event{ID: "msg_1", Type: "user.created", OccurredAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Data: json.RawMessage(`{"id":1}`)},
		},
		{
			name: "an id that looks like a hash", scheme: signing.StandardWebhooks{}, envelope: &receiver.Envelope{DataField: "data"}, id: "sha256-1",
			body: `{"type":"a"}`,
			want: receiver.Event{ID: "sha256-id-?", Type: "a"},
		},
		{
			name: "Slack event", scheme: signing.Slack(), envelope: receiver.SlackEnvelope(),
			body: `{"type":"event_callback","event_id":"Ev1","event_time":1700000001,"event":{"type":"app_mention","text":"hi"}}`,
			want: receiver.Event{ID: "Ev1", Type: "app_mention", OccurredAt: seconds(1700000001), Data: json.RawMessage(`{"type":"app_mention","text":"hi"}`)},
		},
		{
			name: "Slack command", scheme: signing.Slack(), envelope: receiver.SlackEnvelope(), contentType: form,
			body: `command=%2Fdeploy&text=now&trigger_id=1`,
			want: receiver.Event{ID: "sha256-?", Type: "slash_command", Data: json.RawMessage(`{"command":"/deploy","text":"now","trigger_id":"1"}`)},
		},
		{
			name: "Slack interaction", scheme: signing.Slack(), envelope: receiver.SlackEnvelope(), contentType: form,
			body: `payload=%7B%22type%22%3A%22block_actions%22%7D`,
			want: receiver.Event{ID: "sha256-?", Type: "block_actions", Data: json.RawMessage(`{"type":"block_actions"}`)},
		},
		{
			name: "Slack asks", scheme: signing.Slack(), envelope: receiver.SlackEnvelope(),
			body: `{"type":"url_verification","token":"x","challenge":"3eZbr"}`, answer: `{"challenge":"3eZbr"}`,
		},
		{
			name: "Twilio", scheme: twilio(), contentType: form,
			envelope: &receiver.Envelope{ContentTypes: []string{form}, EmptyAnswer: true},
			body:     `From=%2B41&To=1&To=2`,
			want:     receiver.Event{ID: "sha256-?", Type: receiver.Untyped, Data: json.RawMessage(`{"From":"+41","To":["1","2"]}`)},
		},
		{
			name: "text", scheme: signing.GitHub(), contentType: "text/plain; charset=UTF-8",
			envelope: &receiver.Envelope{ContentTypes: []string{"Text/Plain"}}, body: "hello",
			want: receiver.Event{ID: "sha256-2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824", Type: receiver.Untyped},
		},
		{
			name: "read by the application", scheme: signing.Stripe(), body: stripeBody,
			envelope: &receiver.Envelope{Read: func(ev *receiver.Event) error {
				ev.Type += ".v2"
				ev.Object, ev.Version = dedup.Object{Type: "invoice", ID: "in_1"}, 7
				ev.Body = nil
				return nil
			}},
			want: receiver.Event{ID: "evt_1", Type: "invoice.paid.v2", OccurredAt: seconds(1700000000), Data: json.RawMessage(stripeBody),
				Object: dedup.Object{Type: "invoice", ID: "in_1"}, Version: 7},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, _ := onSQLite(t)
			rcv, snd := foreign(t, b, c.scheme, "theirs", receiver.Config{Envelope: c.envelope}, c.contentType)
			request := func() *receivertest.Request {
				req := snd.Raw(c.id, []byte(c.body))
				if c.id == "" {
					req = snd.Raw("unused", []byte(c.body))
				}
				for name, value := range c.header {
					req.Header(name, value)
				}
				return req
			}
			var got []receiver.Event
			h := rcv.Handler(receiver.State(func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
				got = append(got, ev)
				return b.effect(ctx, tx, ev)
			}))
			a := request().Serve(h)
			require.Equal(t, 200, a.Status)
			if c.answer != "" {
				require.JSONEq(t, c.answer, string(a.Body))
				require.Empty(t, got)
				require.Zero(t, b.rows(t))
				return
			}
			if c.envelope.EmptyAnswer {
				require.Empty(t, a.Body)
				require.Empty(t, a.Header)
			} else {
				require.Equal(t, receiver.Applied, a.Result)
			}
			require.Len(t, got, 1)
			ev := got[0]
			require.Equal(t, c.scheme.Name(), ev.Verified.Scheme)
			if prefix, hash := strings.CutSuffix(c.want.ID, "?"); hash {
				require.Regexp(t, "^"+prefix+"[0-9a-f]{64}$", ev.ID)
				c.want.ID = ev.ID
			}
			c.want.Body, c.want.Scope, c.want.Verified, c.want.Attempt = []byte(c.body), "theirs", ev.Verified, 1
			require.Empty(t, cmp.Diff(c.want, ev))

			a = request().Serve(h)
			require.Equal(t, 200, a.Status)
			require.Len(t, got, 1, "a duplicate has no effect")
			require.Equal(t, 401, request().Tampered().Serve(h).Status)
			require.Equal(t, 1, b.effects(t, ev.ID))
			stored, err := storedVersion(t, b, "theirs", ev.Object)
			if c.want.Version == 0 {
				require.ErrorIs(t, err, dedup.ErrInvalid, "no object, no version")
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want.Version, stored)
		})
	}
}

func storedVersion(t *testing.T, b bed[*sql.Tx], scope string, object dedup.Object) (v int64, err error) {
	err = b.inTx(t.Context(), func(tx *sql.Tx) (err error) {
		v, err = b.store.Version(t.Context(), tx, scope, object)
		return err
	})
	return v, err
}

// A body that cannot be an event of the sender is refused, and changes nothing.
func TestForeignRefused(t *testing.T) {
	reading := func(read func(ev *receiver.Event) error) *receiver.Envelope { return &receiver.Envelope{Read: read} }
	for _, c := range []struct {
		name, contentType, body string
		envelope                *receiver.Envelope
		status                  int
	}{
		{"another content type", form, stripeBody, &receiver.Envelope{}, 415},
		{"in another character set", "application/json; charset=latin1", stripeBody, &receiver.Envelope{}, 415},
		{"no JSON", "", `{"id":`, &receiver.Envelope{}, 400},
		{"a type that no route can have", "", `{"id":"evt_1","type":"a\n"}`, &receiver.Envelope{}, 400},
		{"Read says no", "", stripeBody, reading(func(*receiver.Event) error { return errors.New("no") }), 400},
		{"Read panics", "", stripeBody, reading(func(*receiver.Event) error { panic("no") }), 500},
		{"Challenge has no JSON", "", stripeBody, &receiver.Envelope{Challenge: func([]byte) (json.RawMessage, bool) { return json.RawMessage("<b>"), true }}, 500},
		{"Challenge panics", "", stripeBody, &receiver.Envelope{Challenge: func([]byte) (json.RawMessage, bool) { panic("no") }}, 500},
		{"a version without an object", "", stripeBody, reading(func(ev *receiver.Event) error { ev.Version = 1; return nil }), 400},
		{"half of an object", "", stripeBody, reading(func(ev *receiver.Event) error { ev.Object.ID = "a"; return nil }), 400},
		{"a version below 0", "", stripeBody, reading(func(ev *receiver.Event) error {
			ev.Object, ev.Version = dedup.Object{Type: "a", ID: "b"}, -1
			return nil
		}), 400},
		{"no id", "", stripeBody, reading(func(ev *receiver.Event) error { ev.ID = ""; return nil }), 400},
		{"Slack, no form", form, "command=%zz", receiver.SlackEnvelope(), 400},
		{"Slack, a payload that is no JSON", form, "payload=hello", receiver.SlackEnvelope(), 400},
		{"Slack, a payload without a type", form, "payload=%7B%7D", receiver.SlackEnvelope(), 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, _ := onSQLite(t)
			rcv, snd := foreign(t, b, signing.Stripe(), "default", receiver.Config{Envelope: c.envelope}, c.contentType)
			require.Equal(t, c.status, snd.Raw("unused", []byte(c.body)).Serve(rcv.Handler(receiver.State(b.effect))).Status)
			require.Zero(t, b.rows(t))
		})
	}
}

func TestEnvelopeIsChecked(t *testing.T) {
	b, _ := onSQLite(t)
	_, err := receiver.New[*sql.Tx](onlyVerifies{newVerifier(t, nil)}, b.inTx, b.store, "default", &receiver.Config{Envelope: &receiver.Envelope{
		ContentTypes: []string{"json", "application/json; charset=utf-8"}, DataField: "data..object",
	}})
	for _, want := range []string{`ContentTypes has "json"`, `ContentTypes has "application/json; charset=utf-8"`, `DataField is "data..object"`, "FactVerifier"} {
		require.ErrorContains(t, err, want)
	}
}

// onlyVerifies hides all other abilities of a verifier.
type onlyVerifies struct{ receiver.Verifier }

// A dead letter without a version is applied with its marker alone. It is read as at first,
// although the header is gone.
func TestForeignDeadLetter(t *testing.T) {
	b, db := onSQLite(t)
	for name, read := range map[string]func(*receiver.Event) error{
		"no object": nil,
		"an object": func(ev *receiver.Event) error { ev.Object = dedup.Object{Type: "pull", ID: "1"}; return nil },
	} {
		t.Run(name, func(t *testing.T) {
			rcv, snd := foreign(t, b, signing.GitHub(), name, receiver.Config{Envelope: &receiver.Envelope{UnsignedType: true, Read: read}}, "")
			var first receiver.Event
			a := snd.Raw("unused", []byte(githubBody)).Header("X-GitHub-Event", "pull_request").Serve(rcv.Handler(
				receiver.State(func(_ context.Context, _ *sql.Tx, ev receiver.Event) error {
					first = ev
					return receiver.Permanent(errors.New("never"))
				})))
			require.Equal(t, receiver.DeadLettered, a.Result)
			before := b.effects(t, first.ID)
			res, err := rcv.ApplyDeadLetter(t.Context(), name, first.ID, receiver.State(func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
				first.Verified, first.Attempt = signing.Verified{}, 0
				require.Empty(t, cmp.Diff(first, ev))
				return b.effect(ctx, tx, ev)
			}))
			require.NoError(t, err)
			require.Equal(t, receiver.Applied, res)
			require.Equal(t, before+1, b.effects(t, first.ID))
			require.Zero(t, count(t, db, "SELECT count(*) FROM surehook_dedup_dead_letters"))
			require.Zero(t, count(t, db, "SELECT count(*) FROM surehook_dedup_versions"))
		})
	}
}

// An object without a version is applied under the fetched version.
func TestForeignThin(t *testing.T) {
	b, _ := onSQLite(t)
	rcv, snd := foreign(t, b, signing.Stripe(), "default", receiver.Config{Envelope: &receiver.Envelope{
		Read: func(ev *receiver.Event) error { ev.Object = dedup.Object{Type: "invoice", ID: "in_1"}; return nil },
	}}, "")
	now := receiver.Snapshot[int]{Version: 7}
	fetch := func(context.Context, receiver.Event) (receiver.Snapshot[int], error) { return now, nil }
	apply := func(ctx context.Context, tx *sql.Tx, ev receiver.Event, _ receiver.Snapshot[int]) error {
		return b.effect(ctx, tx, ev)
	}
	routes, err := receiver.Router(receiver.OnThin("invoice.*", fetch, apply))
	require.NoError(t, err)
	post := func(id string, h http.Handler) receiver.Result {
		return snd.Raw("unused", []byte(strings.Replace(stripeBody, "evt_1", id, 1))).Serve(h).Result
	}
	thin, routed := rcv.Handler(receiver.Thin(fetch, apply)), rcv.Handler(routes)
	require.Equal(t, receiver.Applied, post("evt_1", thin))
	require.Equal(t, receiver.Stale, post("evt_2", thin), "the same version again")
	now.Version = 8
	require.Equal(t, receiver.Applied, post("evt_3", routed))
	now.Version = 6
	require.Equal(t, receiver.Stale, post("evt_4", routed), "the source lags behind what is stored")
	now = receiver.Snapshot[int]{Gone: true, Version: 9}
	require.Equal(t, receiver.Applied, post("evt_5", thin))
	require.Equal(t, receiver.Duplicate, post("evt_5", routed))
	require.Equal(t, receiver.Duplicate, post("evt_5", thin))
	v, err := storedVersion(t, b, "default", dedup.Object{Type: "invoice", ID: "in_1"})
	require.NoError(t, err)
	require.Equal(t, int64(9), v)
	now = receiver.Snapshot[int]{}
	require.Equal(t, receiver.Applied, post("evt_6", thin), "a source without versions: the marker alone")
	require.Equal(t, receiver.Duplicate, post("evt_6", thin))
}

// An event that is read from the sender's own list equals the event that the sender posts.
func TestForeignTrusted(t *testing.T) {
	b, _ := onSQLite(t)
	rcv, snd := foreign(t, b, signing.Stripe(), "default", receiver.Config{Envelope: &receiver.Envelope{DataField: "data.object"}}, "")
	var got receiver.Event
	read := func(_ context.Context, _ *sql.Tx, ev receiver.Event) error { got = ev; return nil }
	res, err := rcv.Apply(t.Context(), receiver.Trusted[*sql.Tx]{Body: []byte(stripeBody)}, receiver.State(read))
	require.NoError(t, err)
	require.Equal(t, receiver.Applied, res)
	require.Equal(t, "invoice.paid", got.Type)
	require.Equal(t, time.Unix(1700000000, 0).UTC(), got.OccurredAt)
	require.Equal(t, receiver.Duplicate, snd.Raw("unused", []byte(stripeBody)).Serve(rcv.Handler(receiver.State(b.effect))).Result)
	_, err = rcv.Apply(t.Context(), receiver.Trusted[*sql.Tx]{Body: []byte(githubBody)}, receiver.State(read))
	require.ErrorContains(t, err, "Trusted.ID must be given")
	_, err = rcv.Apply(t.Context(), receiver.Trusted[*sql.Tx]{Body: []byte(githubBody), ID: "a", Type: "pushed"}, receiver.State(read))
	require.NoError(t, err)
	require.Equal(t, "pushed", got.Type)
}

// A tenant has its own account at the sender. The facts come through Secrets, too.
func TestForeignSecrets(t *testing.T) {
	b, _ := onSQLite(t)
	keys, err := signing.NewKeyring(signing.Key{Secret: foreignSecret})
	require.NoError(t, err)
	secrets, err := receiver.NewSecrets(receiver.NameInPath, func(_ context.Context, name string) (receiver.Keyholder, error) {
		return receiver.Keyholder{Scope: "of/" + name, Keys: keys}, nil
	}, &receiver.SecretsConfig{Verifier: signing.VerifierConfig{Schemes: []signing.Scheme{signing.Stripe()}}})
	require.NoError(t, err)
	rcv, err := receiver.New(secrets, b.inTx, b.store, "", &receiver.Config{Logger: new(buffer).logger(), Envelope: &receiver.Envelope{}})
	require.NoError(t, err)
	snd := receivertest.NewSender(t, foreignSecret, &receivertest.SenderConfig{Schemes: []signing.Scheme{signing.Stripe()}})
	m := snd.Raw("unused", []byte(stripeBody)).Message()
	res, err := rcv.Receive(t.Context(), m, receiver.State(b.effect))
	require.NoError(t, err)
	require.Equal(t, receiver.Applied, res)
	require.True(t, marked(t, b.inTx, b.store, "of/webhooks", "evt_1"))
	_, err = rcv.Apply(t.Context(), receiver.Trusted[*sql.Tx]{Body: []byte(stripeBody), Scope: "of/other"}, receiver.State(b.effect))
	require.NoError(t, err)
	require.Equal(t, 2, b.effects(t, "evt_1"))
}

// A lamp is switched on, off and on again. GitHub's signature covers the body alone, so the
// third event is the first one again, unless the header's id counts.
func TestUnsignedID(t *testing.T) {
	for _, counts := range []bool{false, true} {
		b, _ := onSQLite(t)
		rcv, snd := foreign(t, b, signing.GitHub(), "lamp", receiver.Config{Envelope: &receiver.Envelope{UnsignedID: counts}}, "")
		var lamp []string
		work := receiver.State(func(_ context.Context, _ *sql.Tx, ev receiver.Event) error {
			lamp = append(lamp, string(ev.Data))
			return nil
		})
		post := func(delivery, state string) receivertest.Answer {
			req := snd.Raw("unused", []byte(state))
			if delivery == "" {
				return req.Without("X-GitHub-Delivery").Serve(rcv.Handler(work))
			}
			return req.Header("X-GitHub-Delivery", delivery).Serve(rcv.Handler(work))
		}
		want := receiver.Duplicate
		if counts {
			want = receiver.Applied
		}
		require.Equal(t, receiver.Applied, post("1", `"on"`).Result)
		require.Equal(t, receiver.Applied, post("2", `"off"`).Result)
		require.Equal(t, want, post("3", `"on"`).Result)
		require.Equal(t, receiver.Duplicate, post("3", `"on"`).Result)
		require.Equal(t, counts, len(lamp) == 3)
		missing := post("", `"on"`)
		if counts {
			require.Equal(t, 400, missing.Status)
		} else {
			require.Equal(t, receiver.Duplicate, missing.Result)
		}
	}
	// A signed id is the only one that counts.
	b, _ := onSQLite(t)
	rcv, snd := foreign(t, b, signing.Stripe(), "default", receiver.Config{Envelope: &receiver.Envelope{UnsignedID: true}}, "")
	post := func() receiver.Result {
		return snd.Raw("unused", []byte(stripeBody)).Serve(rcv.Handler(receiver.State(b.effect))).Result
	}
	require.Equal(t, receiver.Applied, post())
	require.Equal(t, receiver.Duplicate, post())
	require.Equal(t, 1, b.effects(t, "evt_1"))
}
