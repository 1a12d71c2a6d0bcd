// Package sns has the scheme of Amazon SNS's HTTP notifications, whose signatures are made
// with RSA keys that Amazon certifies.
//
//	scheme, err := sns.New([]string{"arn:aws:sns:eu-west-1:123456789012:orders"}, nil)
//	verifier, err := signing.NewVerifier(nil, &signing.VerifierConfig{Schemes: []signing.Scheme{scheme}})
//
// There is no secret. A request names the URL of the certificate, and the scheme fetches
// and keeps it. It does so only from Amazon's host of the topic's own region, over TLS,
// without redirects, at public addresses, and bounded in size, time and number. While it
// cannot be had, Verify returns [ErrCertificate], which is neither a right nor a wrong
// signature: a receiver answers 503, and SNS sends again. With [Config].Certificate
// nothing is fetched.
//
// Somebody who knows a topic can name certificates that are not there, and so use up the
// fetches for as long as they go on. A certificate that this Scheme has had is fetched again
// nonetheless. One that it has not had waits: after a start, and when Amazon takes a new one.
//
// # What is signed
//
// The signature covers Message, MessageId, Subject, Timestamp, TopicArn and Type, and of a
// confirmation also SubscribeURL and Token. It does not cover MessageAttributes and
// UnsubscribeURL: take nothing from them. Anybody can have a topic of their own, whose
// notifications Amazon signs just as well, so [New] takes the topics that count.
//
// Source: https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html.
package sns

import (
	"crypto"
	"crypto/fips140"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // Amazon's version 1, if it is asked for
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/surehook/surehook/signing"
)

// ErrCertificate: the certificate could not be had, so nobody knows whether the signature is
// right.
var ErrCertificate = errors.New("sns: the certificate could not be had")

// Config has the optional settings of a Scheme. The zero value and nil are valid.
type Config struct {
	// SHA1 also takes SignatureVersion 1, which is a topic's default and rests on SHA-1.
	// Set the topic's attribute SignatureVersion to 2 instead.
	SHA1 bool

	// MaxAge is how long after its Timestamp a notification is taken. It must be longer than
	// the topic's delivery policy goes on trying, because a notification that is sent again
	// has its first Timestamp.
	// Defaults to 65 min: a delivery policy ends after an hour at most.
	MaxAge time.Duration

	// Certificate is used in place of Amazon's, for tests: nothing is fetched.
	Certificate *x509.Certificate

	// Timeout bounds the fetching of one certificate.
	// Defaults to 3 s.
	Timeout time.Duration

	// Now is the clock of the certificates' cache and validity. Defaults to time.Now.
	Now func() time.Time
}

// Scheme verifies SNS's notifications. It is safe for concurrent use, and starts nothing.
type Scheme struct {
	topics       []string
	cfg          Config
	certificates *certificates
}

var (
	_ signing.FactReader = (*Scheme)(nil)
	_ signing.OwnKeys    = (*Scheme)(nil)
)

const (
	typeHeader    = "X-Amz-Sns-Message-Type"
	defaultMaxAge = 65 * time.Minute
)

var topicForm = regexp.MustCompile(`^arn:(aws|aws-cn|aws-us-gov):sns:([a-z]{2,3}(?:-[a-z]+)+-[0-9]):[0-9]{12}:[A-Za-z0-9_-]{1,256}(\.fifo)?$`)

// New returns the scheme for notifications of these topics alone, each given by its ARN. A
// nil cfg means all defaults. All problems are reported at once.
func New(topics []string, cfg *Config) (*Scheme, error) {
	s := &Scheme{topics: slices.Clone(topics)}
	if cfg != nil {
		s.cfg = *cfg
	}
	var problems []error
	if len(topics) == 0 {
		problems = append(problems, errors.New("sns: no topic is given: anybody's topic would pass, so give the ARN of each that counts"))
	}
	for _, topic := range topics {
		if !topicForm.MatchString(topic) {
			problems = append(problems, fmt.Errorf("sns: %q is no topic's ARN: it is like arn:aws:sns:eu-west-1:123456789012:orders", topic))
		}
	}
	if s.cfg.MaxAge == 0 {
		s.cfg.MaxAge = defaultMaxAge
	}
	if s.cfg.Timeout == 0 {
		s.cfg.Timeout = 3 * time.Second
	}
	if s.cfg.Now == nil {
		s.cfg.Now = time.Now
	}
	if s.cfg.SHA1 && fips140.Enforced() {
		problems = append(problems, errors.New("sns: Config.SHA1 is set, and GODEBUG=fips140=only does not allow SHA-1: set the topic's attribute SignatureVersion to 2"))
	}
	if s.cfg.MaxAge < time.Second || s.cfg.Timeout < 0 {
		problems = append(problems, fmt.Errorf("sns: Config.MaxAge is %v and Timeout %v: MaxAge must be at least 1s, and Timeout positive", s.cfg.MaxAge, s.cfg.Timeout))
	}
	if c := s.cfg.Certificate; c != nil {
		if _, ok := c.PublicKey.(*rsa.PublicKey); !ok {
			problems = append(problems, errors.New("sns: Config.Certificate has no RSA key: SNS signs with RSA"))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	s.certificates = newCertificates(s.topics, s.cfg.Timeout, s.cfg.Now)
	return s, nil
}

// Name returns "sns".
func (s *Scheme) Name() string { return "sns" }

// OwnKeys says that the scheme needs no keyring.
func (s *Scheme) OwnKeys() {}

// ReplayDefence is [signing.TimeWindow]: of Config.MaxAge. Deduplication goes by MessageId.
func (s *Scheme) ReplayDefence() signing.ReplayDefence { return signing.TimeWindow }

// Precheck implements [signing.Scheme]. All but a header that says what the message is
// stands in the body.
func (s *Scheme) Precheck(h http.Header, _ time.Time, _ time.Duration) error {
	if s == nil || s.certificates == nil { // a zero Scheme
		return signing.ErrNoValidKey
	}
	switch kind, err := signing.OnlyHeader(h, typeHeader, signing.ErrNotSigned); {
	case err != nil:
		return fmt.Errorf("sns: %w", err)
	case !known(kind):
		return fmt.Errorf("sns: %w: %s must be Notification, SubscriptionConfirmation or UnsubscribeConfirmation", signing.ErrMalformedHeader, typeHeader)
	}
	return nil
}

// Verify implements [signing.Scheme]. It looks at the topic and the time first, and fetches
// a certificate only for a message that has both right. Besides package signing's errors it
// returns [ErrCertificate]. The keyring is not used.
func (s *Scheme) Verify(m signing.Message, _ *signing.Keyring, now time.Time, tolerance time.Duration) (signing.Verified, error) {
	if err := s.Precheck(m.Header, now, tolerance); err != nil {
		return signing.Verified{}, err
	}
	msg, err := parse(m.Body)
	if err != nil {
		return signing.Verified{}, fmt.Errorf("%w: %w", signing.ErrSignatureMismatch, err)
	}
	if !slices.Contains(s.topics, msg.fields["TopicArn"]) {
		return signing.Verified{}, fmt.Errorf("sns: %w: the topic is not one of those that were given to New", signing.ErrNoValidKey)
	}
	// Sub is limited to what a Duration holds, and does not wrap round.
	most, skew := s.cfg.MaxAge, now.Sub(msg.at)
	if skew < 0 {
		most = tolerance
	}
	if tolerance < 0 || skew.Abs() > most {
		return signing.Verified{}, &signing.TimestampError{Timestamp: msg.at, Skew: skew.Truncate(time.Second), Tolerance: most}
	}
	hash, sum, err := s.digest(msg)
	if err != nil {
		return signing.Verified{}, err
	}
	cert, id, err := s.certificate(msg)
	if err != nil {
		return signing.Verified{}, err
	}
	key, ok := cert.PublicKey.(*rsa.PublicKey)
	if !ok || rsa.VerifyPKCS1v15(key, hash, sum, msg.signature) != nil {
		return signing.Verified{}, signing.ErrSignatureMismatch
	}
	return signing.Verified{Scheme: s.Name(), KeyID: id, Timestamp: msg.at.Truncate(time.Second), ID: msg.fields["MessageId"]}, nil
}

func (s *Scheme) digest(msg *message) (crypto.Hash, []byte, error) {
	text := msg.text()
	switch {
	case msg.fields["SignatureVersion"] == "2":
		sum := sha256.Sum256(text)
		return crypto.SHA256, sum[:], nil
	case msg.fields["SignatureVersion"] == "1" && s.cfg.SHA1:
		sum := sha1.Sum(text) //nolint:gosec // asked for
		return crypto.SHA1, sum[:], nil
	case msg.fields["SignatureVersion"] == "1":
		return 0, nil, fmt.Errorf("sns: %w: the topic signs with SHA-1: set its attribute SignatureVersion to 2, or Config.SHA1", signing.ErrSignatureMismatch)
	}
	return 0, nil, fmt.Errorf("sns: %w: SignatureVersion is neither 1 nor 2", signing.ErrSignatureMismatch)
}

// certificate returns the one that the message names, and its name.
func (s *Scheme) certificate(msg *message) (*x509.Certificate, string, error) {
	if s.cfg.Certificate != nil {
		return s.cfg.Certificate, "fixed", nil
	}
	u, err := certificateURL(msg.fields["SigningCertURL"], msg.fields["TopicArn"])
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", signing.ErrSignatureMismatch, err)
	}
	cert, err := s.certificates.cache.Get(u)
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrCertificate, err)
	}
	return cert, u[strings.LastIndexByte(u, '/')+1:], nil
}

// Sign returns an error: only Amazon has the keys.
func (s *Scheme) Sign(http.Header, string, time.Time, []byte, *signing.Keyring) error {
	return fmt.Errorf("%w: only Amazon can sign SNS's notifications", signing.ErrSecretUnsuited)
}

// Facts implements [signing.FactReader]: MessageId, Type and Timestamp, which are signed.
func (s *Scheme) Facts(m signing.Message, _ signing.Verified) signing.Facts {
	msg, err := parse(m.Body)
	if err != nil {
		return signing.Facts{}.Of(m)
	}
	return signing.Facts{ID: msg.fields["MessageId"], Type: msg.fields["Type"], Time: msg.at}.Of(m)
}
