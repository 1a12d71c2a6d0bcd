package receiver_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	neturl "net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/httpsig"
)

// tenants keeps the keyholders.
type tenants struct {
	mu      sync.Mutex
	holders map[string]receiver.Keyholder
	err     error
	asked   map[string]int
}

func newTenants() *tenants {
	return &tenants{holders: map[string]receiver.Keyholder{}, asked: map[string]int{}}
}

func (s *tenants) lookup(_ context.Context, name string) (receiver.Keyholder, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[name]++
	if s.err != nil {
		return receiver.Keyholder{}, s.err
	}
	if holder, ok := s.holders[name]; ok {
		return holder, nil
	}
	return receiver.Keyholder{}, fmt.Errorf("no tenant: %w", receiver.ErrUnknownKey)
}

// set gives the tenant new secrets, and returns a sender that has the last secret.
func (s *tenants) set(t *testing.T, name string, secrets ...signing.Secret) *receivertest.Sender {
	t.Helper()
	if secrets == nil {
		secrets = []signing.Secret{signing.GenerateSecret()}
	}
	var keys []signing.Key
	for i, secret := range secrets {
		keys = append(keys, signing.Key{ID: fmt.Sprint("key_", i), Secret: secret})
	}
	ring, err := signing.NewKeyring(keys...)
	require.NoError(t, err)
	s.mu.Lock()
	s.holders[name] = receiver.Keyholder{Scope: "tenant/" + name, Keys: ring}
	s.mu.Unlock()
	return receivertest.NewSender(t, secrets[len(secrets)-1], nil)
}

func (s *tenants) fail(err error) {
	s.mu.Lock()
	s.err = err
	s.mu.Unlock()
}

func (s *tenants) remove(name string) {
	s.mu.Lock()
	delete(s.holders, name)
	s.mu.Unlock()
}

func (s *tenants) times(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[name]
}

// door takes requests for tenants by the path.
type door struct {
	t       *testing.T
	b       bed[*memory.Tx]
	secrets *receiver.Secrets
	rcv     *receiver.Receiver[*memory.Tx]
}

func newDoor(t *testing.T, lookup receiver.Lookup, cfg *receiver.SecretsConfig, rcvCfg *receiver.Config) door {
	t.Helper()
	secrets, err := receiver.NewSecrets(receiver.NameInPath, lookup, cfg)
	require.NoError(t, err)
	d := door{t: t, b: onMemory(), secrets: secrets}
	if rcvCfg == nil {
		rcvCfg = &receiver.Config{}
	}
	rcvCfg.Logger = new(buffer).logger()
	d.rcv, err = receiver.New(secrets, d.b.inTx, d.b.store, "", rcvCfg)
	require.NoError(t, err)
	return d
}

// A name that is remembered keeps nothing else of its request, or a thousand strangers with
// long URLs would fill the memory.
func TestNameOfItsOwn(t *testing.T) {
	var name string
	d := newDoor(t, func(_ context.Context, asked string) (receiver.Keyholder, error) {
		name = asked
		return receiver.Keyholder{}, receiver.ErrUnknownKey
	}, nil, nil)
	m := receivertest.NewSender(t, signing.GenerateSecret(), nil).Request(newEvent(1)).Message()
	m.URL = "/hooks/acme?" + strings.Repeat("x", 1<<16)
	_, err := d.rcv.Receive(t.Context(), m, receiver.State(func(context.Context, *memory.Tx, receiver.Event) error { return nil }))
	require.ErrorIs(t, err, receiver.ErrUnknownKey)
	require.Equal(t, "acme", name)
	require.NotSame(t, unsafe.StringData(m.URL[len("/hooks/"):]), unsafe.StringData(name))
}

func (d door) send(name string, req *receivertest.Request) (receiver.Answer, error) {
	m := req.Message()
	m.URL = "/hooks/" + name + "?x=1"
	res, err := d.rcv.Receive(context.Background(), m, receiver.State(func(context.Context, *memory.Tx, receiver.Event) error { return nil }))
	return receiver.AnswerTo(res, err), err
}

func (d door) status(name string, req *receivertest.Request) int {
	a, _ := d.send(name, req)
	return a.Status
}

// Each tenant's events are in a scope of its own, and no tenant can sign for another.
func TestSecretsByRequest(t *testing.T) {
	all := newTenants()
	d := newDoor(t, all.lookup, nil, nil)
	acme, umbrella := all.set(t, "acme"), all.set(t, "umbrella")
	ev := newEvent(1)
	require.Equal(t, 200, d.status("acme", acme.Request(ev)))
	a, _ := d.send("umbrella", umbrella.Request(ev))
	require.Equal(t, `{"result":"applied"}`, string(a.Body), "another tenant's event of the same id")
	require.True(t, marked(t, d.b.inTx, d.b.store, "tenant/acme", ev.ID))
	require.False(t, marked(t, d.b.inTx, d.b.store, "default", ev.ID))

	wrong, err := d.send("acme", umbrella.Request(newEvent(2)))
	require.ErrorIs(t, err, signing.ErrSignatureMismatch)
	for _, name := range []string{"nobody", "", "acme/", strings.Repeat("x", 257)} {
		unknown, err := d.send(name, acme.Request(newEvent(2)))
		require.ErrorIs(t, err, receiver.ErrUnknownKey, name)
		require.Equal(t, wrong, unknown, "an unknown name is answered like a wrong signature")
		require.Equal(t, 401, unknown.Status)
	}
	require.Zero(t, all.times(strings.Repeat("x", 257)), "nobody has such a name")

	// Checks that need no secret are made without a lookup.
	require.Equal(t, 400, d.status("other", acme.Request(ev).Without("Webhook-Timestamp")))
	require.Equal(t, 401, d.status("other", acme.Request(ev).Skewed(time.Hour)))
	require.Zero(t, all.times("other"))
}

func TestNameInHeader(t *testing.T) {
	name := receiver.NameInHeader("x-key-id")
	snd := newSender(t)
	require.Equal(t, "acme", name(snd.Request(newEvent(1)).Header("X-Key-Id", "acme").Message()))
	require.Empty(t, name(snd.Request(newEvent(1)).Header("X-Key-Id", "acme").Repeated("X-Key-Id").Message()))
	require.Empty(t, name(snd.Request(newEvent(1)).Message()))
	require.Equal(t, "a b", receiver.NameInPath(signing.Message{URL: "http://host/x/a%20b?c=/d"}))
	require.Equal(t, "a/b", receiver.NameInPath(signing.Message{URL: "/x/a%2Fb"}))
	for url, name := range map[string]string{ // with characters that should be escaped, and some senders leave as they are
		"/x/a%2Fb|c": "a/b|c", "http://host/x/a%2Fb|c?d=%zz": "a/b|c", "/x/{a}%2Fb": "{a}/b", "/x%2F|/a%252Fb\"": "a%2Fb\"",
	} {
		u, err := neturl.ParseRequestURI(url) // as net/http does
		require.NoError(t, err)
		require.Equal(t, name, receiver.NameInPath(signing.Message{URL: url}), "%s has the path %s", url, u.Path)
	}
	require.Empty(t, receiver.NameInPath(signing.Message{URL: "/x/a/"}))
	require.Empty(t, receiver.NameInPath(signing.Message{URL: "%zz"}))
}

// A failed lookup is no verdict: the answer is 503, and the sender keeps the event.
func TestLookupFails(t *testing.T) {
	ring, err := signing.NewKeyring(signing.Key{Secret: mustSecret("a-plain_text_of_at_least_24_bytes")})
	require.NoError(t, err)
	for name, lookup := range map[string]receiver.Lookup{
		"error": func(context.Context, string) (receiver.Keyholder, error) {
			return receiver.Keyholder{}, errors.New("away")
		},
		"signing error": func(context.Context, string) (receiver.Keyholder, error) {
			return receiver.Keyholder{}, signing.ErrNoValidKey
		},
		"panic":    func(context.Context, string) (receiver.Keyholder, error) { panic("no") },
		"nothing":  func(context.Context, string) (receiver.Keyholder, error) { return receiver.Keyholder{}, nil },
		"no scope": func(context.Context, string) (receiver.Keyholder, error) { return receiver.Keyholder{Keys: ring}, nil },
		"unsuited": func(context.Context, string) (receiver.Keyholder, error) {
			return receiver.Keyholder{Scope: "a", Keys: ring}, nil
		},
		"its own timing": func(ctx context.Context, _ string) (receiver.Keyholder, error) {
			<-ctx.Done()
			return receiver.Keyholder{}, ctx.Err()
		},
	} {
		timeout := time.Duration(0) // the default
		if name == "its own timing" {
			timeout = 20 * time.Millisecond
		}
		d := newDoor(t, lookup, &receiver.SecretsConfig{
			Timeout:  timeout,
			Verifier: signing.VerifierConfig{Schemes: []signing.Scheme{signing.StandardWebhooks{}}},
		}, nil)
		for range 2 {
			a, err := d.send("acme", newSender(t).Request(newEvent(1)))
			require.Equal(t, 503, a.Status, name)
			require.Equal(t, "5", a.Header.Get("Retry-After"), name)
			var e *receiver.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, receiver.ReasonSecrets, e.Reason, name)
			if name == "nothing" {
				require.ErrorContains(t, err, "must be ErrUnknownKey")
			}
		}
	}
	d := newDoor(t, nil2, nil, nil)
	d.secrets, err = receiver.NewSecrets(func(signing.Message) string { panic("no") }, nil2, nil)
	require.NoError(t, err)
	_, err = d.secrets.Verify(newSender(t).Request(newEvent(1)).Message())
	require.ErrorIs(t, err, receiver.ErrLookup)
	d.secrets, err = receiver.NewSecrets(receiver.NameInPath, nil2, nil)
	require.NoError(t, err)
	_, err = d.secrets.Verify(newSender(t).Request(newEvent(1)).Without("Webhook-Timestamp").Message())
	require.ErrorIs(t, err, signing.ErrMissingHeader, "whatever the name")
}

func nil2(context.Context, string) (receiver.Keyholder, error) {
	return receiver.Keyholder{}, receiver.ErrUnknownKey
}

func TestSecretsReportsEverything(t *testing.T) {
	_, err := receiver.NewSecrets(nil, nil, &receiver.SecretsConfig{
		Size: -1, TTL: -1, NegativeTTL: -1, Timeout: -1, Lookups: -1, Verifier: signing.VerifierConfig{Tolerance: 1},
	})
	for _, problem := range []string{"NameInPath", "no lookup", "Size", "TTL", "NegativeTTL", "Timeout", "Lookups", "tolerance"} {
		require.ErrorContains(t, err, problem)
	}
	secrets, err := receiver.NewSecrets(receiver.NameInPath, nil2, nil)
	require.NoError(t, err)
	b := onMemory()
	_, err = receiver.New(secrets, b.inTx, b.store, "default", nil)
	require.ErrorContains(t, err, "the scope is then that of the keyholder")
	_, err = receiver.New(secrets, b.inTx, b.store, "", &receiver.Config{ScopeOf: func(signing.Verified) string { return "a" }})
	require.ErrorContains(t, err, "the scope is then that of the keyholder")
	_, err = receiver.New((*receiver.Secrets)(nil), b.inTx, b.store, "default", nil)
	require.ErrorContains(t, err, "the verifier is nil")
	_, err = receiver.New((*signing.Verifier)(nil), b.inTx, b.store, "default", nil)
	require.ErrorContains(t, err, "the verifier is nil")
}

// Keys can depend on the request with each algorithm of HTTP Message Signatures.
func TestSecretsOfMessageSignatures(t *testing.T) {
	for _, algorithm := range []signing.Algorithm{signing.HMACSHA256, signing.Ed25519, signing.ECDSAP256, signing.RSAPSSSHA512, signing.RSASHA256} {
		scheme, err := httpsig.New(algorithm, []string{"content-digest"}, nil)
		require.NoError(t, err)
		secrets, err := receiver.NewSecrets(receiver.NameInPath, nil2, &receiver.SecretsConfig{Verifier: signing.VerifierConfig{Schemes: []signing.Scheme{scheme}}})
		require.NoError(t, err, algorithm)
		require.ErrorIs(t, secrets.Precheck(http.Header{}), signing.ErrNotSigned)
	}
}

func TestSecretsAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newTenants()
		d := newDoor(t, all.lookup, nil, nil)
		acme := all.set(t, "acme")
		send := func(name string) int { return d.status(name, acme.Request(newEvent(1))) }
		for range 3 {
			require.Equal(t, 200, send("acme"))
			require.Equal(t, 401, send("nobody"))
		}
		require.Equal(t, 1, all.times("acme"))
		require.Equal(t, 1, all.times("nobody"))
		time.Sleep(10 * time.Second)
		send("acme")
		send("nobody")
		require.Equal(t, 1, all.times("acme"))
		require.Equal(t, 2, all.times("nobody"), "an unknown name is asked for again after NegativeTTL")
		time.Sleep(5*time.Minute - 10*time.Second)
		all.fail(errors.New("away"))
		require.Equal(t, 503, send("acme"), "what is too old is not used, even if there is nothing newer")
		all.fail(nil)
		require.Equal(t, 200, send("acme"), "a failure is not remembered")
		require.Equal(t, 3, all.times("acme"))
	})
}

// The memory is bounded, the keyrings used last stay, and unknown names push none of them
// out.
func TestSecretsMemoryIsBounded(t *testing.T) {
	all := newTenants()
	d := newDoor(t, all.lookup, &receiver.SecretsConfig{Size: 2}, nil)
	senders := map[string]*receivertest.Sender{}
	for _, name := range []string{"a", "b", "c"} {
		senders[name] = all.set(t, name)
	}
	send := func(name string) { require.Equal(t, 200, d.status(name, senders[name].Request(newEvent(1)))) }
	send("a")
	send("b")
	send("a")
	send("c") // in place of b
	send("a")
	for i := range 10 {
		require.Equal(t, 401, d.status(fmt.Sprint("nobody", i), senders["a"].Request(newEvent(1))))
	}
	send("a")
	require.Equal(t, 1, all.times("a"))
	send("b")
	require.Equal(t, 2, all.times("b"))
}

// A new secret counts at once. A forger who uses another's name causes one lookup in
// NegativeTTL. If that lookup fails, the answer is 503, because nobody knows.
func TestSecretsRotate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newTenants()
		d := newDoor(t, all.lookup, nil, nil)
		before := all.set(t, "acme")
		require.Equal(t, 200, d.status("acme", before.Request(newEvent(1))))
		after := all.set(t, "acme")
		require.Equal(t, 401, d.status("acme", after.Request(newEvent(1))))
		require.Equal(t, 1, all.times("acme"))
		time.Sleep(10 * time.Second)
		require.Equal(t, 200, d.status("acme", after.Request(newEvent(1))))
		require.Equal(t, 2, all.times("acme"))
		for range 5 {
			require.Equal(t, 401, d.status("acme", before.Request(newEvent(1))))
		}
		require.Equal(t, 2, all.times("acme"))
		time.Sleep(10 * time.Second)
		all.fail(errors.New("away"))
		require.Equal(t, 503, d.status("acme", before.Request(newEvent(1))))
		require.Equal(t, 200, d.status("acme", after.Request(newEvent(1))), "who has the right secret needs no lookup")
		all.fail(nil)

		all.remove("acme")
		require.Equal(t, 200, d.status("acme", after.Request(newEvent(1))), "remembered")
		require.Equal(t, 401, d.status("acme", before.Request(newEvent(1))), "looked up again, and gone")
		require.Equal(t, 401, d.status("acme", after.Request(newEvent(1))), "so nobody's secret is right")

		after = all.set(t, "acme")
		require.Equal(t, 401, d.status("acme", after.Request(newEvent(1))))
		d.secrets.Forget("acme")
		require.Equal(t, 200, d.status("acme", after.Request(newEvent(1))))
		all.remove("acme")
		require.Equal(t, 200, d.status("acme", after.Request(newEvent(1))), "remembered")
		d.secrets.Forget("acme")
		require.Equal(t, 401, d.status("acme", after.Request(newEvent(1))))
	})
}

// Concurrent requests for the same name share one lookup, whichever of them leaves. The
// result of a lookup from before Forget is not remembered after it.
func TestSecretsSingleFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newTenants()
		acme := all.set(t, "acme")
		var asked atomic.Int32
		answer := make(chan struct{})
		d := newDoor(t, func(ctx context.Context, name string) (receiver.Keyholder, error) {
			asked.Add(1)
			select {
			case <-answer:
			case <-ctx.Done():
			}
			return all.lookup(ctx, name)
		}, &receiver.SecretsConfig{Timeout: time.Hour}, nil)
		statuses := make(chan int, 50)
		go func() { // the first one leaves
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			m := acme.Request(newEvent(1)).Message()
			m.URL = "/acme"
			_, err := d.rcv.Receive(ctx, m, receiver.State(d.b.effect))
			statuses <- receiver.AnswerTo("", err).Status
		}()
		synctest.Wait()
		for i := range 49 {
			go func() {
				statuses <- d.status("acme", acme.Request(receivertest.NewEvent("subscriber", fmt.Sprint(i), 1)))
			}()
		}
		require.Equal(t, 503, <-statuses)
		d.secrets.Forget("acme")
		close(answer)
		for range 49 {
			require.Equal(t, 200, <-statuses)
		}
		require.Equal(t, int32(1), asked.Load())
		require.Equal(t, 200, d.status("acme", acme.Request(newEvent(1))))
		require.Equal(t, int32(2), asked.Load(), "the answer is from before Forget")
	})
}

func TestLookupsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int32
		d := newDoor(t, func(context.Context, string) (receiver.Keyholder, error) {
			most.Store(max(most.Load(), running.Add(1)))
			time.Sleep(time.Second)
			running.Add(-1)
			return receiver.Keyholder{}, receiver.ErrUnknownKey
		}, &receiver.SecretsConfig{Lookups: 2, Timeout: 1500 * time.Millisecond}, nil)
		statuses := make(chan int, 10)
		snd := newSender(t)
		for i := range 10 {
			go func() { statuses <- d.status(fmt.Sprint(i), snd.Request(newEvent(1))) }()
		}
		got := map[int]int{}
		for range 10 {
			got[<-statuses]++
		}
		require.Equal(t, map[int]int{401: 4, 503: 6}, got)
		require.Equal(t, int32(2), most.Load())
	})
}

// The hook tells which secret was used, so that an operator knows when nobody uses the old
// secret any more.
func TestVerifiedHook(t *testing.T) {
	all := newTenants()
	older, newer := signing.GenerateSecret(), signing.GenerateSecret()
	withNewer := all.set(t, "acme", older, newer)
	withOlder := receivertest.NewSender(t, older, nil)
	var used []string
	d := newDoor(t, all.lookup, nil, &receiver.Config{Hooks: receiver.Hooks{
		Verified: func(_ context.Context, ev receiver.Event) {
			used = append(used, ev.Scope+" "+ev.Verified.KeyID+" "+ev.Type)
		},
		Applied: func(context.Context, receiver.Event) { used = append(used, "applied") },
	}})
	require.Equal(t, 200, d.status("acme", withOlder.Request(newEvent(1))))
	require.Equal(t, 200, d.status("acme", withNewer.Request(typedEvent("webhook.challenge", 2, map[string]string{"token": "abc"}))))
	require.Equal(t, 401, d.status("acme", withNewer.Request(newEvent(2)).Tampered()))
	require.Equal(t, []string{"tenant/acme key_0 subscriber.updated", "applied", "tenant/acme key_1 webhook.challenge"}, used)
}
