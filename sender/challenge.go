package sender

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/surehook/surehook/internal/guard"
	"github.com/surehook/surehook/sender/internal/post"
	"github.com/surehook/surehook/signing"
)

const (
	// ChallengeType is the type of the event that a challenge posts.
	ChallengeType = "webhook.challenge"
	// maxChallengeAnswer bounds the answer to a challenge, in bytes.
	maxChallengeAnswer = 1 << 10
)

// ClassChallenge: a challenge was answered with 2xx, and not with its token.
const ClassChallenge Class = "challenge"

// ChallengeError tells how a challenge failed. It matches ErrChallenge.
type ChallengeError struct {
	Class      Class
	StatusCode int    // 0: no answer
	Text       string // what went wrong, for the owner of the URL
}

func (e *ChallengeError) Error() string { return ErrChallenge.Error() + ": " + e.Text }

// Is makes errors.Is(err, ErrChallenge) true.
func (e *ChallengeError) Is(target error) bool { return target == ErrChallenge }

// ChallengerConfig adjusts a Challenger. A nil config and zero fields mean the
// defaults. What is as in DispatcherConfig should be what the Dispatcher has.
type ChallengerConfig struct {
	// Network says which addresses may be called.
	Network Network

	// Timeout bounds a challenge, from the dial to the end of the answer. The
	// default is 10 s, and at most 30 s are allowed.
	Timeout time.Duration

	// Proxies and UnguardedTransport are as in DispatcherConfig.
	Proxies            map[string]*url.URL
	UnguardedTransport http.RoundTripper

	// Schemes sign the challenge. The default is signing.DefaultSchemes.
	Schemes []signing.Scheme

	// Now is the clock of the signatures. The default is time.Now.
	Now func() time.Time

	// UserAgent is the header's value. The default is "surehook".
	UserAgent string
}

// Challenger asks callback URLs for a proof that whoever answers there has the
// subscriber's secret and wants its events, so that nobody can have events sent
// to somebody else. It is safe for concurrent use.
//
// A challenge is one POST of a signed event of the type webhook.challenge:
//
//	{"id":"evt_…","type":"webhook.challenge","occurred_at":"…",
//	 "object":{"type":"subscription","id":"wsub_…"},"version":1,"data":{"token":"…"}}
//
// It must be answered with 2xx and the token, as {"token":"…"} or as bare text, in
// at most 1 KiB. It is sent once, like an attempt, with the settings that the
// subscription is to have. Package receiver answers it by itself.
type Challenger struct {
	keys    *Keys
	network guard.Policy
	now     func() time.Time
	post    *post.Poster
	// keyring reads a subscriber's secrets in a transaction of its own.
	keyring func(ctx context.Context, subscriber string) (SealedKeyring, error)
}

// NewChallenger returns a Challenger for the subscribers of a store, whose secrets
// were sealed with keys. It goes into RegistryConfig.Challenger.
func NewChallenger[Tx any](store Store[Tx], keys *Keys, cfg *ChallengerConfig) (*Challenger, error) {
	var c ChallengerConfig
	if cfg != nil {
		c = *cfg
	}
	c = c.withDefaults()
	errs := c.problems()
	if store == nil {
		errs = append(errs, errors.New("sender: NewChallenger needs a store"))
	}
	if keys == nil {
		errs = append(errs, errors.New("sender: NewChallenger needs the keys that the secrets are sealed with: a challenge is signed"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	policy := c.Network.policy()
	return &Challenger{
		keys: keys, network: policy, now: c.Now,
		post: post.New(post.Config{
			Policy: policy, Timeout: c.Timeout, Places: 2, Proxies: c.Proxies, Unguarded: c.UnguardedTransport,
			Schemes: c.Schemes, UserAgent: c.UserAgent, Now: time.Now,
		}),
		keyring: func(ctx context.Context, subscriber string) (sealed SealedKeyring, err error) {
			err = store.InTx(ctx, func(tx Tx) error {
				sealed, err = store.SubscriberKeyringTx(ctx, tx, subscriber)
				return err
			})
			return sealed, err
		},
	}, nil
}

func (c ChallengerConfig) withDefaults() ChallengerConfig {
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.Schemes == nil {
		c.Schemes = signing.DefaultSchemes()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.UserAgent == "" {
		c.UserAgent = post.DefaultUserAgent
	}
	return c
}

func (c ChallengerConfig) problems() []error {
	var errs []error
	if c.Timeout < 0 || c.Timeout > maxTimeout {
		errs = append(errs, fmt.Errorf("sender: ChallengerConfig.Timeout is %v: it must be positive and at most %v", c.Timeout, maxTimeout))
	}
	if len(c.Schemes) == 0 {
		errs = append(errs, errors.New("sender: ChallengerConfig.Schemes is empty: nothing is ever sent unsigned"))
	}
	if err := c.Network.policy().Validate(); err != nil {
		errs = append(errs, fmt.Errorf("sender: ChallengerConfig.Network: %w", err))
	}
	return append(errs, post.CheckProxies("ChallengerConfig", c.Proxies)...)
}

// Challenge challenges a URL on behalf of a subscriber's subscription, which need
// not be stored yet. It returns nil if the token came back in time, and a
// *ChallengeError if the endpoint is to blame. ErrProxy: the operator's proxy is;
// ErrNotFound: no such subscriber; ErrInvalid: the URL is refused; ErrSealed: a secret
// or the certificate cannot be opened. It must not be called inside a transaction.
func (c *Challenger) Challenge(ctx context.Context, subscriber, subscriptionID, rawURL string, s Settings) error {
	u, err := c.network.CheckURL(rawURL)
	if err != nil {
		return fmt.Errorf("%w subscription: url: %w", ErrInvalid, err)
	}
	sealed, err := c.keyring(ctx, subscriber)
	if err != nil {
		return err
	}
	keyring, err := c.keys.keyring(sealed)
	if err != nil {
		return err
	}
	now := c.now()
	token := newToken()
	e, err := challengeOf(subscriber, subscriptionID, token, now)
	if err != nil {
		return err
	}
	x, err := c.keys.prepare(c.post, post.Request{
		Subscription: subscriptionID, URL: u, Event: e.ID, Attempt: 1, At: now, Body: e.Body(1), Keyring: keyring,
		Anew: true, // since it is not made again
	}, &s)
	if err != nil {
		return err
	}
	var said string
	r := x.Send(ctx, func(answer io.Reader) (err error) {
		said, err = readChallenge(answer, token)
		return err
	})
	switch {
	case r.Class == post.ClassNone && said != "":
		return &ChallengeError{Class: ClassChallenge, StatusCode: r.StatusCode, Text: said}
	case r.Class == post.ClassNone:
		return nil
	case ctx.Err() != nil: // the caller's time was over, and not the endpoint's
		return fmt.Errorf("sender: the challenge was given up: %w", ctx.Err())
	case r.ProxyFailed:
		return fmt.Errorf("%w: %s", ErrProxy, r.Error)
	}
	return &ChallengeError{Class: Class(r.Class), StatusCode: r.StatusCode, Text: r.Error}
}

// newToken returns 256 random bits in base64url.
func newToken() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func challengeOf(subscriber, subscription, token string, now time.Time) (Draft, error) {
	data, err := json.Marshal(map[string]string{"token": token})
	if err != nil {
		return Draft{}, err
	}
	e := Event{
		Type: ChallengeType, Object: Object{Type: "subscription", ID: subscription}, Version: 1, Data: data,
		Subscriber: subscriber, Subscription: subscription,
	}
	return e.draft(now, len(data)+4<<10)
}

// readChallenge returns what is wrong with a 2xx answer, or "".
func readChallenge(answer io.Reader, token string) (string, error) {
	body, err := io.ReadAll(io.LimitReader(answer, maxChallengeAnswer+1))
	switch {
	case err != nil:
		return "", err
	case len(body) > maxChallengeAnswer:
		return fmt.Sprintf("the answer has more than %d bytes: it must be the token alone", maxChallengeAnswer), nil
	case !hasToken(body, token):
		return `the answer is not the token: answer data.token as {"token":"…"} or as it is`, nil
	}
	return "", nil
}

func hasToken(body []byte, token string) bool {
	said := bytes.TrimSpace(body)
	var object struct {
		Token string `json:"token"`
	}
	if json.Unmarshal(said, &object) == nil {
		said = []byte(object.Token)
	}
	return subtle.ConstantTimeCompare(said, []byte(token)) == 1
}
