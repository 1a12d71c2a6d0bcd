package challenge

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/surehook/surehook/internal/guard"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/post"
	"github.com/surehook/surehook/signing"
)

const (
	// Type is the type of the event that a challenge posts.
	Type = "webhook.challenge"
	// maxChallengeAnswer bounds the answer to a challenge, in bytes.
	maxChallengeAnswer = 1 << 10
)

// Class: a challenge was answered with 2xx, and not with its token.
const Class sender.Class = "challenge"

// Error tells how a challenge failed. It matches ErrChallenge.
type Error struct {
	Class      sender.Class
	StatusCode int    // 0: no answer
	Text       string // what went wrong, for the owner of the URL
}

func (e *Error) Error() string { return sender.ErrChallenge.Error() + ": " + e.Text }

// Is makes errors.Is(err, ErrChallenge) true.
func (e *Error) Is(target error) bool { return target == sender.ErrChallenge }

// Config adjusts a Challenger. A nil config and zero fields mean the
// defaults. A field that dispatch.Config has too should have the Dispatcher's value.
type Config struct {
	// Network says which addresses may be called.
	Network sender.Network

	// Timeout bounds a challenge, from the dial to the end of the answer. The
	// default is 10 s, and at most 30 s are allowed.
	Timeout time.Duration

	// Proxies and UnguardedTransport are as in dispatch.Config.
	Proxies            sender.Proxies
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
	network guard.Policy
	now     func() time.Time
	post    *post.Poster
}

// New returns a Challenger, which goes into RegistryConfig.Challenger.
func New(cfg *Config) (*Challenger, error) {
	var c Config
	if cfg != nil {
		c = *cfg
	}
	c = c.withDefaults()
	if err := errors.Join(c.problems()...); err != nil {
		return nil, err
	}
	policy := guard.Policy(c.Network)
	return &Challenger{
		network: policy, now: c.Now,
		post: post.New(post.Config{
			Policy: policy, Timeout: c.Timeout, Places: 2, Proxies: c.Proxies, Unguarded: c.UnguardedTransport,
			Schemes: c.Schemes, UserAgent: c.UserAgent, Now: time.Now,
		}),
	}, nil
}

func (c Config) withDefaults() Config {
	if c.Timeout == 0 {
		c.Timeout = sender.DefaultTimeout
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

func (c Config) problems() []error {
	var errs []error
	if c.Timeout < 0 || c.Timeout > sender.MaxTimeout {
		errs = append(errs, fmt.Errorf("challenge: Config.Timeout is %v: it must be positive and at most %v", c.Timeout, sender.MaxTimeout))
	}
	if len(c.Schemes) == 0 {
		errs = append(errs, errors.New("challenge: Config.Schemes is empty: nothing is ever sent unsigned"))
	}
	if err := post.CheckUserAgent("challenge: Config", c.UserAgent); err != nil {
		errs = append(errs, err)
	}
	if err := guard.Policy(c.Network).Validate(); err != nil {
		errs = append(errs, fmt.Errorf("challenge: Config.Network: %w", err))
	}
	return append(errs, post.CheckProxies("challenge: Config", c.Proxies)...)
}

// Challenge challenges a URL once. It returns nil if the token came back in time, and a
// *Error if the endpoint is to blame. ErrProxy: the operator's proxy is;
// ErrInvalid: the URL is refused. It must not be called inside a transaction.
func (c *Challenger) Challenge(ctx context.Context, ask sender.Challenge) error {
	u, err := c.network.CheckURL(ask.URL)
	if err != nil {
		return fmt.Errorf("%w subscription: url: %w", sender.ErrInvalid, err)
	}
	now := c.now()
	token := newToken()
	e, err := challengeOf(ask.Subscriber, ask.Subscription, token, now)
	if err != nil {
		return err
	}
	r := post.Request{
		Subscription: ask.Subscription, URL: u, Event: e.ID, Attempt: 1, At: now, Body: e.Body(1), Keyring: ask.Keyring,
		Header: ask.Header.Clone(), Timeout: ask.Settings.Timeout, Proxy: ask.Settings.Proxy, SealedCertificate: ask.Settings.SealedCertificate,
		Anew: true, // since it is not made again
	}
	x, err := c.post.Prepare(&r, func() (*tls.Certificate, error) { return ask.Certificate, nil })
	if errors.Is(err, post.ErrProbed) {
		err = fmt.Errorf("%w: %w", sender.ErrProxy, err)
	}
	if err != nil {
		return err
	}
	var said string
	answer := x.Send(ctx, func(body io.Reader) (err error) {
		said, err = readChallenge(body, token)
		return err
	})
	switch {
	case answer.Class == sender.ClassNone && said != "":
		return &Error{Class: Class, StatusCode: answer.StatusCode, Text: said}
	case answer.Class == sender.ClassNone:
		return nil
	case ctx.Err() != nil: // the caller's time was over, and not the endpoint's
		return fmt.Errorf("sender: the challenge was given up: %w", ctx.Err())
	case answer.ProxyFailed:
		return fmt.Errorf("%w: %s", sender.ErrProxy, answer.Error)
	case answer.Ours:
		return errors.New("sender: the challenge could not be made: " + answer.Error)
	}
	return &Error{Class: answer.Class, StatusCode: answer.StatusCode, Text: answer.Error}
}

// newToken returns 256 random bits in base64url.
func newToken() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func challengeOf(subscriber, subscription, token string, now time.Time) (sender.Draft, error) {
	e := sender.Event{
		Type: Type, Object: sender.Object{Type: "subscription", ID: subscription}, Version: 1, Data: map[string]string{"token": token},
		Subscriber: subscriber, Subscription: subscription,
	}
	return e.Draft(now, 8<<10)
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
