package receiver_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/signing"
)

// The probable mistake goes to the log and the hook, without a byte of the secret or of the
// body, and never into the answer. The answer is the same as for a forgery.
func TestDiagnosis(t *testing.T) {
	b := onMemory()
	log := new(buffer)
	var hooked []string
	cfg := &receiver.Config{Logger: log.logger(), Hooks: receiver.Hooks{
		Rejected: func(_ context.Context, err *receiver.Error) { hooked = append(hooked, err.Diagnosis...) },
	}}
	h := b.receiver(t, cfg).Handler(receiver.State(b.effect))
	spaced := func() *receivertest.Request { // the body is signed as it is, and sent with a newline
		r := newSender(t).Raw("evt_1", []byte(`{"id":"evt_secret"}`))
		return r.Appended("\n")
	}
	forged := newSender(t).Request(newEvent(1)).WrongSecret().Serve(h)
	mistaken := spaced().Serve(h)
	require.Equal(t, forged.Status, mistaken.Status)
	require.Equal(t, forged.Body, mistaken.Body)
	require.Equal(t, forged.Header, mistaken.Header)
	require.Len(t, hooked, 2)
	require.Contains(t, hooked[0], "no known mistake explains the signature")
	require.Equal(t, "the body was changed after signing: white space around it was added", hooked[1])
	require.Contains(t, log.String(), "diagnosis=")
	require.Contains(t, log.String(), "white space around it was added")
	require.NotContains(t, log.String(), "evt_secret")
	require.NotContains(t, log.String(), strings.TrimPrefix(testSecret.Reveal(), "whsec_"))
	require.Equal(t, 401, newSender(t).Request(newEvent(1)).Skewed(-2*time.Hour).Serve(h).Status)
	require.Contains(t, log.String(), "that is a time zone's difference")

	cfg.NoDiagnosis, hooked = true, nil
	spaced().Serve(b.receiver(t, cfg).Handler(receiver.State(b.effect)))
	require.Nil(t, hooked)
}

// The log of a refused signature has the fingerprints of the keys, also without a diagnosis,
// and the answer has nothing of it.
func TestTriedKeys(t *testing.T) {
	b := onMemory()
	log := new(buffer)
	all := newTenants()
	acme := all.set(t, "acme")
	d := newDoor(t, all.lookup, nil, nil)
	for name, known := range map[string]bool{"acme": true, "nobody": false} {
		_, err := d.send(name, acme.Request(newEvent(1)).WrongSecret())
		var failure *receiver.Error
		require.ErrorAs(t, err, &failure)
		require.Equal(t, known, len(failure.Tried) == 1, name)
	}

	h := b.receiver(t, &receiver.Config{Logger: log.logger(), NoDiagnosis: true}).Handler(receiver.State(b.effect))
	a := newSender(t).Request(newEvent(1)).WrongSecret().Serve(h)
	require.Equal(t, 401, a.Status)
	fingerprint := testSecret.Fingerprint()
	require.Contains(t, log.String(), `tried="[\"key_1\" (fingerprint `+fingerprint+`)]"`)
	require.NotContains(t, string(a.Body), fingerprint)
	require.NotContains(t, log.String(), strings.TrimPrefix(testSecret.Reveal(), "whsec_")[:6])

	log = new(buffer)
	h = b.receiver(t, &receiver.Config{Logger: log.logger(), NoDiagnosis: true}).Handler(receiver.State(b.effect))
	require.Equal(t, 401, newSender(t).Request(newEvent(1)).Skewed(-2*time.Hour).Serve(h).Status)
	require.NotContains(t, log.String(), "tried=", "no key was tried")
}

// A secret without its prefix is named as the cause, and not the scheme that needs no
// prefix.
func TestDiagnosisOfAPrefix(t *testing.T) {
	b := onMemory()
	var found []string
	keys, err := signing.NewKeyring(signing.Key{ID: "key_1", Secret: mustSecret(strings.TrimPrefix(testSecret.Reveal(), "whsec_"))})
	require.NoError(t, err)
	v, err := signing.NewVerifier(keys, &signing.VerifierConfig{Schemes: []signing.Scheme{signing.TimestampBody{}}})
	require.NoError(t, err)
	rcv, err := receiver.New(v, b.inTx, b.store, "default", &receiver.Config{Logger: new(buffer).logger(), Hooks: receiver.Hooks{
		Rejected: func(_ context.Context, err *receiver.Error) { found = err.Diagnosis },
	}})
	require.NoError(t, err)
	require.Equal(t, 401, newSender(t).Request(newEvent(1)).Serve(rcv.Handler(receiver.State(b.effect))).Status)
	require.Equal(t, []string{`the prefix whsec_ of the key "key_1" was cut off: give the secret exactly as the sender shows it`}, found)
}

// A forger can cause only a few diagnoses.
func TestDiagnosisIsRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, found := onMemory(), 0
		h := b.receiver(t, &receiver.Config{Hooks: receiver.Hooks{
			Rejected: func(_ context.Context, err *receiver.Error) { found += len(err.Diagnosis) },
		}}).Handler(receiver.State(b.effect))
		flood := func() int {
			found = 0
			for range 100 {
				newSender(t).Raw("evt_1", []byte(`{}`)).Appended("\n").Serve(h)
			}
			return found
		}
		require.Equal(t, 5, flood())
		require.Equal(t, 0, flood())
		time.Sleep(10 * time.Second)
		require.Equal(t, 1, flood())
		time.Sleep(time.Hour)
		require.Equal(t, 5, flood())
	})
}

func TestDiagnosisOfSecrets(t *testing.T) {
	all := newTenants()
	acme := all.set(t, "acme")
	var found []string
	d := newDoor(t, all.lookup, nil, &receiver.Config{Hooks: receiver.Hooks{
		Rejected: func(_ context.Context, err *receiver.Error) { found = err.Diagnosis },
	}})
	require.Equal(t, 401, d.status("acme", acme.Raw("evt_1", []byte(`{}`)).Appended("\n")))
	require.Equal(t, []string{"the body was changed after signing: white space around it was added"}, found)
	require.Equal(t, 401, d.status("nobody", acme.Request(newEvent(1))))
	require.Contains(t, found[0], "nobody has a secret under the name")
	require.Equal(t, 401, d.status("nobody", acme.Request(newEvent(1)).Skewed(2*time.Hour)))
	require.Contains(t, found[0], "time zone")
}

// An application's own verifier decides. A verifier that cannot decide gives no verdict.
func TestOwnVerifier(t *testing.T) {
	b := onMemory()
	rcv, err := receiver.New(odd{newVerifier(t, nil)}, b.inTx, b.store, "default", &receiver.Config{Logger: new(buffer).logger()})
	require.NoError(t, err)
	h := rcv.Handler(receiver.State(func(context.Context, *memory.Tx, receiver.Event) error { return nil }))
	require.Equal(t, 200, newSender(t).Request(newEvent(1)).Serve(h).Status)
	require.Equal(t, 503, newSender(t).Request(newEvent(2)).Header("X-Odd", "1").Serve(h).Status)
}

type odd struct{ receiver.Verifier }

func (o odd) Verify(m signing.Message) (signing.Verified, error) {
	if m.Header.Get("X-Odd") != "" {
		return signing.Verified{}, errLook
	}
	return o.Verifier.Verify(m)
}
