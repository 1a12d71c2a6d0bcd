package surehook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook"
	inbound "github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/catalogue"
	"github.com/surehook/surehook/sender/catalogue/shop"
	"github.com/surehook/surehook/sender/challenge"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	outbound "github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/replay"
	"github.com/surehook/surehook/sender/sendertest"
	"github.com/surehook/surehook/signing"
)

func key(id string) sender.SealingKey {
	return sender.SealingKey{ID: id, Key: []byte(strings.Repeat(id, 32)[:32])}
}

func newSender(t *testing.T, cfg *surehook.SenderConfig) (*surehook.Sender[*outbound.Tx], error) {
	t.Helper()
	store, err := outbound.New(nil)
	require.NoError(t, err)
	return surehook.NewSender(store, key("2026-11"), cfg)
}

// Settings that all parts share are said once: a second place would be right for one of
// them alone.
func TestOverlappingSettings(t *testing.T) {
	for field, d := range map[string]dispatch.Config{
		"Network":   {Network: sender.Network{Deny: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}},
		"Retention": {Retention: sender.Retention{Reach: time.Hour}},
		"Timeout":   {Timeout: time.Second},
		"Proxies":   {Proxies: map[string]*url.URL{}},
		"Schemes":   {Schemes: signing.DefaultSchemes()},
		"UserAgent": {UserAgent: "mine"},
		"Logger":    {Logger: slog.Default()},
	} {
		_, err := newSender(t, &surehook.SenderConfig{Dispatch: d})
		require.EqualError(t, err, "surehook: SenderConfig.Dispatch."+field+" is set: set SenderConfig."+field+", which all parts share")
	}
	_, err := newSender(t, &surehook.SenderConfig{Dispatch: dispatch.Config{Policy: dispatch.Policy{Own: sender.PolicyBounds{Allowed: true}}}})
	require.EqualError(t, err, "surehook: SenderConfig.Dispatch.Policy.Own is set: set SenderConfig.OwnPolicies, which all parts share")
	_, err = newReceiver(&surehook.ReceiverConfig{Receive: receiver.Config{ScopeOf: func(signing.Verified) string { return "" }}})
	require.EqualError(t, err, "surehook: ReceiverConfig.Receive.ScopeOf is set: NewReceiver has one scope; for several, use receiver.New")
}

// The bounds of policies are those of the registry and of the dispatcher.
func TestOwnPolicies(t *testing.T) {
	s, err := newSender(t, &surehook.SenderConfig{OwnPolicies: sender.PolicyBounds{Allowed: true, MaxHorizon: 2 * time.Hour}})
	require.NoError(t, err)
	_, _, err = s.Registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	n := sender.NewSubscription{Subscriber: "sub_a", URL: "https://example.com/", Settings: sender.Settings{Horizon: 3 * time.Hour}}
	_, err = s.Registry.Subscribe(t.Context(), n)
	require.ErrorContains(t, err, "the horizon is 3h0m0s: it must be from 1m0s to 2h0m0s")
	require.Equal(t, 2*time.Hour, s.Dispatcher.PolicyOf(n.Settings).Horizon)
}

// acquainted is a Challenger that knows who may have which URL.
type acquainted struct{ owners map[string]string }

func (a acquainted) Challenge(_ context.Context, c sender.Challenge) error {
	if a.owners[c.URL] != c.Subscriber {
		return fmt.Errorf("%w: %s is not known as yours", sender.ErrChallenge, c.URL)
	}
	return nil
}

// A Challenger of the service's own takes the place of the library's, for a new URL and for a changed one.
func TestChallengerOfOnesOwn(t *testing.T) {
	known, other := "https://a.example/", "https://b.example/"
	s, err := newSender(t, &surehook.SenderConfig{Challenger: acquainted{map[string]string{known: "sub_a"}}})
	require.NoError(t, err)
	ctx := t.Context()
	_, _, err = s.Registry.CreateSubscriber(ctx, sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	made, err := s.Registry.Subscribe(ctx, sender.NewSubscription{Subscriber: "sub_a", URL: known})
	require.NoError(t, err)
	_, err = s.Registry.Subscribe(ctx, sender.NewSubscription{Subscriber: "sub_a", URL: other})
	require.ErrorIs(t, err, sender.ErrChallenge)
	_, err = s.Registry.Update(ctx, made.ID, sender.SubscriptionChange{URL: &other})
	require.ErrorIs(t, err, sender.ErrChallenge)
	_, err = newSender(t, &surehook.SenderConfig{Challenge: true, Challenger: acquainted{}})
	require.EqualError(t, err, "surehook: SenderConfig.Challenge and SenderConfig.Challenger are both set: leave out Challenge, for the Challenger takes its place")
}

// The door refuses what a part refuses, and all of it at once.
func TestProblemsOfParts(t *testing.T) {
	_, err := newSender(t, &surehook.SenderConfig{
		MaxBodyBytes: -1, Timeout: time.Hour, Retention: sender.Retention{Reach: -1}, Challenge: true, Dispatch: dispatch.Config{Slots: -1},
	})
	for _, part := range []string{"MaxBodyBytes", "Timeout is 1h0m0s", "Reach", "Slots is -1"} {
		require.ErrorContains(t, err, part)
	}
	lines := strings.Split(err.Error(), "\n")
	slices.Sort(lines)
	require.Len(t, slices.Compact(slices.Clone(lines)), len(lines), "several parts refuse the reach, and it is said once: %v", lines)
	_, err = newSender(t, &surehook.SenderConfig{ // of the dispatcher alone
		Retention: sender.Retention{Reach: 24 * time.Hour}, Timeout: 3 * time.Second, Proxies: map[string]*url.URL{"out": {Scheme: "ftp", Host: "a"}},
		Dispatch: dispatch.Config{Lease: 4 * time.Second},
	})
	for _, part := range []string{"Retention.Reach is 24h0m0s", "three times the Timeout, 9s", `Proxies: the URL of "out"`} {
		require.ErrorContains(t, err, part)
	}
	_, err = newSender(t, &surehook.SenderConfig{OlderKeys: []sender.SealingKey{key("2026-11")}})
	require.Error(t, err)
	_, err = surehook.NewSender[*outbound.Tx](nil, sender.SealingKey{}, &surehook.SenderConfig{Dispatch: dispatch.Config{Timeout: time.Second}})
	for _, part := range []string{"surehook: NewSender needs a store: see the packages sender/postgres and sender/sqlite", "set SenderConfig.Timeout", "key"} {
		require.ErrorContains(t, err, part)
	}

	_, err = surehook.NewReceiver(inbound.New().InTx, inbound.New(), "", "short", &surehook.ReceiverConfig{OlderSecrets: []string{"short"}})
	for _, part := range []string{"needs a scope", "surehook: the secret: ", "OlderSecrets[0]: "} {
		require.ErrorContains(t, err, part)
	}
	current, older := signing.GenerateSecret().Reveal(), signing.GenerateSecret().Reveal()
	for place, olders := range map[string][]string{"OlderSecrets[0] is the secret itself": {current}, "OlderSecrets[1] is OlderSecrets[0]": {older, older}} {
		_, err = surehook.NewReceiver(inbound.New().InTx, inbound.New(), "billing", current, &surehook.ReceiverConfig{OlderSecrets: olders})
		require.ErrorContains(t, err, "surehook: ReceiverConfig."+place+": leave it out")
	}
	_, err = newReceiver(&surehook.ReceiverConfig{Receive: receiver.Config{Reach: 30 * 24 * time.Hour}})
	require.ErrorContains(t, err, "a reach of 720h0m0s and a horizon of 72h0m0s", "markers must outlast both")
	_, err = newReceiver(&surehook.ReceiverConfig{Receive: receiver.Config{Retention: 10 * 24 * time.Hour}})
	require.ErrorContains(t, err, "a reach of 672h0m0s and a horizon of 72h0m0s", "which are those of a sender by default")
}

// A receiver with the defaults knows every event that a sender with the defaults sends
// again without force: also at the last retry of what was redelivered at the end of the
// reach.
func TestReceiverRemembersWhatIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		results := map[receiver.Result]int{}
		count := func(of receiver.Result) func(context.Context, receiver.Event) {
			return func(context.Context, receiver.Event) { results[of]++ }
		}
		var take http.Handler
		answers := []func(w http.ResponseWriter, r *http.Request){
			func(w http.ResponseWriter, r *http.Request) { // it is applied, and the answer is lost
				take.ServeHTTP(httptest.NewRecorder(), r)
				w.WriteHeader(http.StatusBadGateway)
			},
		}
		wire := sendertest.NewRoundTripper(sendertest.Func(func(w http.ResponseWriter, r *http.Request) {
			if len(answers) == 0 {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			answers[0](w, r)
			answers = answers[1:]
		}))
		s, err := newSender(t, &surehook.SenderConfig{Logger: slog.New(slog.DiscardHandler), Dispatch: dispatch.Config{UnguardedTransport: wire}})
		require.NoError(t, err)
		owner, secret, err := s.Registry.CreateSubscriber(ctx, sender.NewSubscriber{})
		require.NoError(t, err)
		_, err = s.Registry.Subscribe(ctx, sender.NewSubscription{Subscriber: owner.ID, URL: "https://customer.example/"})
		require.NoError(t, err)
		markers := inbound.New()
		hooks, err := surehook.NewReceiver(markers.InTx, markers, "billing", secret.Reveal(), &surehook.ReceiverConfig{Receive: receiver.Config{
			Logger: slog.New(slog.DiscardHandler), Hooks: receiver.Hooks{
				Applied: count(receiver.Applied), Duplicate: count(receiver.Duplicate),
				DeadLettered: func(context.Context, receiver.Event, error) { results[receiver.DeadLettered]++ },
			},
		}})
		require.NoError(t, err)
		take = hooks.Handler(receiver.Fact(func(context.Context, *inbound.Tx, receiver.Event) error { return nil }))

		published := time.Now()
		_, err = s.Publish(ctx, sender.Event{Type: "a.b", Object: sender.Object{Type: "o", ID: "1"}, Subscriber: owner.ID})
		require.NoError(t, err)
		ran := make(chan error)
		go func() { ran <- hooks.Run(ctx) }() // removes markers
		dispatch := func(d time.Duration) {
			for range d / (30 * time.Minute) {
				_, err := s.Dispatcher.RunOnce(ctx)
				require.NoError(t, err)
				time.Sleep(30 * time.Minute)
			}
		}
		dispatch(75 * time.Hour)
		time.Sleep(28*24*time.Hour - time.Since(published))
		all, _, err := s.History.Deliveries(ctx, history.DeliveryQuery{Status: sender.StatusDeadLettered})
		require.NoError(t, err)
		require.Len(t, all, 1)
		require.NoError(t, s.History.Redeliver(ctx, all[0].ID), "at the end of the reach")
		dispatch(71 * time.Hour)
		answers = append(answers, take.ServeHTTP)
		dispatch(2 * time.Hour)
		stop()
		require.NoError(t, <-ran)
		require.Equal(t, map[receiver.Result]int{receiver.Applied: 1, receiver.Duplicate: 1}, results, "the last one after %v", time.Since(published))
	})
}

// Every part has what it shares with the others.
func TestPartsAgree(t *testing.T) {
	proxy := &url.URL{Scheme: "http", Host: "proxy.example:3128"}
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	s, err := newSender(t, &surehook.SenderConfig{
		Network: sender.Network{AllowPrivateNetworks: true}, Timeout: 3 * time.Second, Proxies: map[string]*url.URL{"out": proxy},
		Now: func() time.Time { return now }, MaxBodyBytes: 1000,
	})
	require.NoError(t, err)
	ctx := t.Context()
	owner, _, err := s.Registry.CreateSubscriber(ctx, sender.NewSubscriber{})
	require.NoError(t, err)
	sub, err := s.Registry.Subscribe(ctx, sender.NewSubscription{
		Subscriber: owner.ID, URL: "http://127.0.0.1:1/", Settings: sender.Settings{Proxy: "out", Timeout: 3 * time.Second},
	})
	require.NoError(t, err, "the network, the proxies and the timeout are the registry's too")
	_, err = s.Registry.Update(ctx, sub.ID, sender.SubscriptionChange{Settings: &sender.Settings{Timeout: 4 * time.Second}})
	require.ErrorContains(t, err, "3s")
	require.Equal(t, now, owner.CreatedAt.UTC().Truncate(time.Second))
	_, err = s.Publish(ctx, sender.Event{Type: "a.b", Object: sender.Object{Type: "o", ID: "1"}, Data: strings.Repeat("x", 1000)})
	require.ErrorContains(t, err, "1000")
}

// An event that names nobody goes to all, unless that must be said by another publisher.
func TestRequireSubscriber(t *testing.T) {
	s, err := newSender(t, &surehook.SenderConfig{RequireSubscriber: true})
	require.NoError(t, err)
	e := sender.Event{Type: "a.b", Object: sender.Object{Type: "o", ID: "1"}}
	bad := e
	bad.Type = "a..b"
	_, err = s.PublishMany(t.Context(), []sender.Event{bad})
	require.ErrorIs(t, err, sender.ErrInvalidEvent)
	require.ErrorContains(t, err, "type")
	require.ErrorContains(t, err, "subscriber is empty, and RequireSubscriber is set: name the one that the event is for")
	_, err = s.Publish(t.Context(), e)
	require.ErrorIs(t, err, sender.ErrInvalidEvent)
	customer, _, err := s.Registry.CreateSubscriber(t.Context(), sender.NewSubscriber{})
	require.NoError(t, err)
	e.Subscriber = customer.ID
	ref, err := s.Publish(t.Context(), e)
	require.NoError(t, err)
	require.EqualValues(t, 1, ref.Version, "nothing was written before")

	s, err = newSender(t, nil)
	require.NoError(t, err)
	e.Subscriber = ""
	_, err = s.Publish(t.Context(), e)
	require.NoError(t, err)
}

// A payload version that no process could make an older one of is refused before it is stored.
func TestUnknownPayloadVersion(t *testing.T) {
	types, err := catalogue.New([]catalogue.Type{{
		Name: "a.b", Object: "o", Kind: catalogue.State, Description: "B has changed.",
		Versions: []catalogue.Version{{Examples: []catalogue.Example{{Name: "one", ObjectID: "1", Data: json.RawMessage(`{}`)}}}},
	}})
	require.NoError(t, err)
	var checked []string
	s, err := newSender(t, &surehook.SenderConfig{Catalogue: types, PublishCheck: func(_ context.Context, p sender.Payload) error {
		checked = append(checked, p.Type)
		return nil
	}})
	require.NoError(t, err)
	e := sender.Event{Type: "a.b", Object: sender.Object{Type: "o", ID: "1"}, Data: json.RawMessage(`{}`), PayloadVersion: "2026-11-26"}
	_, err = s.Publish(t.Context(), e)
	require.ErrorIs(t, err, sender.ErrInvalidEvent)
	require.ErrorContains(t, err, `type "a.b" has no payload version "2026-11-26": it has one version: leave it out`)
	e.Type = "not.in.it"
	_, err = s.Publish(t.Context(), e)
	require.NoError(t, err, "it is not converted")
	e.Type, e.PayloadVersion = "a.b", ""
	_, err = s.Publish(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, []string{"not.in.it", "a.b"}, checked)
}

// A filter is previewed on the payload version that is delivered, and facts are in no order by
// which older ones are not: one catalogue is for all parts.
func TestPartsAgreeOnTheCatalogue(t *testing.T) {
	types, err := shop.New()
	require.NoError(t, err)
	s, err := newSender(t, &surehook.SenderConfig{Catalogue: types})
	require.NoError(t, err)
	_, err = s.Publish(t.Context(), sender.Event{
		Type: "invoice.paid", Object: sender.Object{Type: "invoice", ID: "in_1"},
		Data: json.RawMessage(`{"id":"in_1","total":{"amount":4200,"currency":"EUR"},"updated_at":"2026-01-02T15:04:05Z"}`),
	})
	require.NoError(t, err)
	first := shop.First
	for want, pinned := range map[int]*string{0: nil, 1: &first} {
		p, err := s.History.Preview(t.Context(), history.PreviewQuery{Filter: `{"data.total":4200}`, PayloadVersion: pinned})
		require.NoError(t, err)
		require.Equal(t, []int{1, want, 0}, []int{p.Events, p.Matching, p.Unmade})
	}
	owner, _, err := s.Registry.CreateSubscriber(t.Context(), sender.NewSubscriber{})
	require.NoError(t, err)
	_, err = s.Registry.Subscribe(t.Context(), sender.NewSubscription{Subscriber: owner.ID, URL: "https://customer.example/", Settings: sender.Settings{Order: sender.OrderLatest}})
	require.ErrorContains(t, err, `each event of the type "order.cancelled" counts: choose another order, or event types without this one; "*" has it`)
}

// An endpoint sees deliveries and challenges alike, and all parts that send events again
// reach back equally far.
func TestPartsAgreeOnTheWireAndTheReach(t *testing.T) {
	var log bytes.Buffer
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	clock := func() time.Time { return now }
	store, err := outbound.New(&outbound.Config{Now: clock})
	require.NoError(t, err)
	endpoint := sendertest.NewRoundTripper(sendertest.Func(func(w http.ResponseWriter, r *http.Request) {
		var challenge struct{ Data struct{ Token string } }
		_ = json.NewDecoder(r.Body).Decode(&challenge)
		_, _ = io.WriteString(w, challenge.Data.Token)
	}))
	s, err := surehook.NewSender(store, key("2026-11"), &surehook.SenderConfig{
		Challenge: true, UserAgent: "acme", Schemes: []signing.Scheme{signing.TimestampBody{}}, Now: clock,
		Retention: sender.Retention{Reach: 96 * time.Hour, Receivers: 200 * time.Hour},
		Logger:    slog.New(slog.NewTextHandler(&log, nil)),
		Dispatch: dispatch.Config{
			UnguardedTransport: endpoint,
			Hooks:              dispatch.Hooks{Expanded: func(context.Context, dispatch.Expanded) { panic("a mistake in a hook") }},
		},
	})
	require.NoError(t, err)
	ctx := t.Context()
	private, err := signing.ParseSecret("whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=")
	require.NoError(t, err)
	_, _, err = s.Registry.CreateSubscriber(ctx, sender.NewSubscriber{Secret: private})
	require.ErrorIs(t, err, signing.ErrSecretUnsuited)
	owner, _, err := s.Registry.CreateSubscriber(ctx, sender.NewSubscriber{})
	require.NoError(t, err)
	sub, err := s.Registry.Subscribe(ctx, sender.NewSubscription{Subscriber: owner.ID, URL: "https://customer.example/"})
	require.NoError(t, err)
	require.Len(t, endpoint.Requests(), 1, "the challenge")
	event := sender.Event{Type: "a.b", Object: sender.Object{Type: "o", ID: "1"}, Subscriber: owner.ID}
	_, err = s.Publish(ctx, event)
	require.NoError(t, err)
	_, err = s.Dispatcher.RunOnce(ctx)
	require.NoError(t, err)
	require.Contains(t, log.String(), "a hook panicked")
	posts := endpoint.Requests()
	require.Len(t, posts, 2)
	for _, p := range posts {
		require.Equal(t, "acme", p.Header.Get("User-Agent"))
		require.NotEmpty(t, p.Header.Get("Webhook-Hmac-Sha256"))
		require.Empty(t, p.Header.Get("Webhook-Signature"), "of a scheme that was not asked for")
	}

	delivered, _, err := s.History.Deliveries(ctx, history.DeliveryQuery{})
	require.NoError(t, err)
	require.Len(t, delivered, 1)
	require.NoError(t, s.Registry.Pause(ctx, sub.ID))
	_, err = s.Publish(ctx, event)
	require.NoError(t, err)
	_, err = s.Dispatcher.RunOnce(ctx)
	require.NoError(t, err)
	now = now.Add(97 * time.Hour)
	require.ErrorIs(t, s.History.Redeliver(ctx, delivered[0].ID), sender.ErrRetention)
	_, err = s.Replays.Create(ctx, replay.Request{Filter: replay.Filter{Status: sender.StatusDelivered}})
	require.ErrorIs(t, err, sender.ErrRetention)
	require.ErrorIs(t, s.Registry.Resume(ctx, sub.ID, sender.Resume{}), sender.ErrRetention)
}

// A configuration keeps its secrets, whatever prints it.
func TestConfigsKeepSecrets(t *testing.T) {
	const secret = "hunter2-hunter2-hunter2"
	in := surehook.ReceiverConfig{
		OlderSecrets: []string{secret},
		Receive:      receiver.Config{Handshake: &receiver.Handshake{VerifyToken: secret, Origins: []string{"origin.example"}}},
	}
	proxies := map[string]*url.URL{"eu": {Scheme: "http", Host: "proxy.example", User: url.UserPassword(secret, secret)}, "none": nil}
	out := surehook.SenderConfig{
		OlderKeys: []sender.SealingKey{{ID: "before", Key: []byte(secret)}},
		Proxies:   proxies, Dispatch: dispatch.Config{Proxies: proxies},
	}
	values := []any{in, &in, in.OlderSecrets, in.Receive, in.Receive.Handshake, *in.Receive.Handshake, out, &out, out.Proxies, out.Dispatch, challenge.Config{Proxies: proxies}}
	var printed bytes.Buffer
	for _, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			fmt.Fprintf(&printed, verb+"\n", v)
		}
		slog.New(slog.NewTextHandler(&printed, nil)).Info("m", "v", v)
		slog.New(slog.NewJSONHandler(&printed, nil)).Info("m", "v", v)
		encoded, _ := json.Marshal(v) // functions cannot be encoded
		printed.Write(encoded)
	}
	for _, form := range []string{secret, fmt.Sprintf("%x", secret), fmt.Sprintf("%X", secret), "104 117 110"} {
		require.NotContains(t, printed.String(), form)
	}
	for _, shown := range []string{"[1 secrets]", "origin.example", "eu:http://proxy.example", "before"} {
		require.Contains(t, printed.String(), shown)
	}
}

// A rotation's overlap holds with the default schemes: what each of the old secrets has
// signed is accepted, and what the new one has. A secret that would never be tried is refused.
func TestOlderSecrets(t *testing.T) {
	work := receiver.State(func(context.Context, *inbound.Tx, receiver.Event) error { return nil })
	for n := range 4 {
		store := inbound.New()
		secrets := []signing.Secret{signing.GenerateSecret()}
		var older []string
		for range n {
			secrets = append(secrets, signing.GenerateSecret())
			older = append(older, secrets[len(secrets)-1].Reveal())
		}
		r, err := surehook.NewReceiver(store.InTx, store, "billing", secrets[0].Reveal(), &surehook.ReceiverConfig{OlderSecrets: older})
		require.NoError(t, err)
		for i, secret := range secrets {
			for _, scheme := range signing.DefaultSchemes() {
				_, err := r.Receive(t.Context(), signed(t, scheme, secret), work)
				require.NoError(t, err, "%s, %d of %d", scheme.Name(), i, n)
			}
		}
		_, err = r.Receive(t.Context(), signed(t, signing.TimestampBody{}, signing.GenerateSecret()), work)
		require.Error(t, err)
	}
	older := make([]string, 4)
	for i := range older {
		older[i] = signing.GenerateSecret().Reveal()
	}
	_, err := newReceiver(&surehook.ReceiverConfig{OlderSecrets: older})
	require.ErrorContains(t, err, "OlderSecrets has 4 secrets: at most 3 are tried")
}

func TestTolerance(t *testing.T) {
	for tolerance, want := range map[time.Duration]bool{0: false, 500 * time.Second: true} {
		store, secret := inbound.New(), signing.GenerateSecret()
		r, err := surehook.NewReceiver(store.InTx, store, "billing", secret.Reveal(), &surehook.ReceiverConfig{
			Tolerance: tolerance,
			Receive:   receiver.Config{Now: func() time.Time { return time.Now().Add(400 * time.Second) }, Logger: slog.New(slog.DiscardHandler)},
		})
		require.NoError(t, err)
		_, err = r.Receive(t.Context(), signed(t, signing.TimestampBody{}, secret), receiver.State(func(context.Context, *inbound.Tx, receiver.Event) error { return nil }))
		require.Equal(t, want, err == nil, "%v: %v", tolerance, err)
	}
}

func signed(t *testing.T, scheme signing.Scheme, secret signing.Secret) signing.Message {
	t.Helper()
	keys, err := signing.NewKeyring(signing.Key{Secret: secret})
	require.NoError(t, err)
	id := "evt_" + scheme.Name() + secret.Fingerprint()
	body := []byte(`{"id":"` + id + `","type":"a.b","created_at":"2026-11-01T00:00:00Z","object":{"type":"o","id":"1"},"version":1,"data":{}}`)
	m := signing.Message{Method: http.MethodPost, URL: "/", Header: http.Header{"Content-Type": {"application/json"}}, Body: body}
	require.NoError(t, scheme.Sign(m.Header, id, time.Now(), body, keys))
	return m
}

func newReceiver(cfg *surehook.ReceiverConfig) (*receiver.Receiver[*inbound.Tx], error) {
	store := inbound.New()
	return surehook.NewReceiver(store.InTx, store, "billing", signing.GenerateSecret().Reveal(), cfg)
}
