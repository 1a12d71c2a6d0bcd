package receiver_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha512"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/signing"
)

// ownScheme is an application's own scheme, with its own key, and unknown to package
// signing. It gives the type of an event, and no id.
type ownScheme struct{ key []byte }

var _ signing.FactReader = ownScheme{}

func (ownScheme) Name() string { return "own" }

func (ownScheme) Precheck(h http.Header, _ time.Time, _ time.Duration) error {
	if h.Get("X-Own") == "" {
		return signing.ErrNotSigned
	}
	return nil
}

func (s ownScheme) mac(body []byte) string {
	mac := hmac.New(sha512.New, s.key)
	mac.Write(body)
	return fmt.Sprintf("%x", mac.Sum(nil))
}

func (s ownScheme) Verify(m signing.Message, _ *signing.Keyring, now time.Time, tolerance time.Duration) (signing.Verified, error) {
	if err := s.Precheck(m.Header, now, tolerance); err != nil {
		return signing.Verified{}, err
	}
	if !hmac.Equal([]byte(s.mac(m.Body)), []byte(m.Header.Get("X-Own"))) {
		return signing.Verified{}, signing.ErrSignatureMismatch
	}
	return signing.Verified{Scheme: s.Name()}, nil
}

func (s ownScheme) Sign(h http.Header, _ string, _ time.Time, body []byte, _ *signing.Keyring) error {
	h.Set("X-Own", s.mac(body))
	return nil
}

func (ownScheme) Facts(signing.Message, signing.Verified) signing.Facts {
	return signing.Facts{Type: "thing.changed"}
}

// ownVerifier is an application's own verifier, which does not use package signing's.
type ownVerifier struct{ ownScheme }

func (v ownVerifier) Precheck(h http.Header) error { return v.ownScheme.Precheck(h, time.Time{}, 0) }

func (v ownVerifier) Verify(m signing.Message) (signing.Verified, error) {
	return v.ownScheme.Verify(m, nil, time.Time{}, 0)
}

func (v ownVerifier) VerifyFacts(m signing.Message) (signing.Verified, signing.Facts, error) {
	verified, err := v.Verify(m)
	return verified, v.Facts(m, verified), err
}

func (v ownVerifier) BodyFacts(body []byte) signing.Facts {
	return v.Facts(signing.Message{Body: body}, signing.Verified{})
}

// The verified bytes tell events without an id apart.
func TestEventsWithoutIDsOfASchemeOfOnesOwn(t *testing.T) {
	scheme := ownScheme{[]byte("a key that package signing never sees")}
	cfg := signing.VerifierConfig{Schemes: []signing.Scheme{scheme}}
	keys, err := signing.NewKeyring(signing.Key{Secret: testSecret})
	require.NoError(t, err)
	verifier, err := signing.NewVerifier(keys, &cfg)
	require.NoError(t, err)
	secrets, err := receiver.NewSecrets(func(signing.Message) string { return "tenant" }, func(context.Context, string) (receiver.Keyholder, error) {
		return receiver.Keyholder{Scope: "default", Keys: keys}, nil
	}, &receiver.SecretsConfig{Verifier: cfg})
	require.NoError(t, err)
	for name, verifier := range map[string]receiver.Verifier{
		"the scheme alone": verifier, "with Secrets": secrets, "a verifier of one's own": ownVerifier{scheme},
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := onSQLite(t)
			scope := "default"
			if name == "with Secrets" {
				scope = ""
			}
			rcv, err := receiver.New(verifier, b.inTx, b.store, scope, &receiver.Config{Envelope: &receiver.Envelope{}, Logger: new(buffer).logger()})
			require.NoError(t, err)
			post := func(no int) (receiver.Result, error) {
				m := signing.Message{Method: http.MethodPost, Header: http.Header{"Content-Type": {"application/json"}}, Body: fmt.Appendf(nil, `{"no":%d}`, no)}
				require.NoError(t, scheme.Sign(m.Header, "", time.Time{}, m.Body, nil))
				return rcv.Receive(t.Context(), m, receiver.State(b.effect))
			}
			for no := range 3 {
				for _, want := range []receiver.Result{receiver.Applied, receiver.Duplicate} {
					res, err := post(no)
					require.NoError(t, err)
					require.Equal(t, want, res, "event %d", no)
				}
			}
			require.Equal(t, 6, b.rows(t), "three markers and three effects")
		})
	}
}

// A panic of a foreign reader ends nothing but its event.
func TestFactsThatPanic(t *testing.T) {
	b, _ := onSQLite(t)
	rcv, err := receiver.New(panickyVerifier{}, b.inTx, b.store, "default", &receiver.Config{Envelope: &receiver.Envelope{}, Logger: new(buffer).logger()})
	require.NoError(t, err)
	_, err = rcv.Apply(t.Context(), trusted(`{}`), receiver.State(b.effect))
	var failure *receiver.Error
	require.True(t, errors.As(err, &failure))
	require.Equal(t, receiver.ReasonPanic, failure.Reason)
}

type panickyVerifier struct{ ownVerifier }

func (panickyVerifier) BodyFacts([]byte) signing.Facts { panic("no header") }
