// Package paypal has the scheme of PayPal's webhooks, whose signatures are made with RSA keys
// that a certificate authority certifies.
//
//	scheme, err := paypal.New("4JH86294D6297924G", nil)
//	verifier, err := signing.NewVerifier(nil, &signing.VerifierConfig{
//		Schemes:      []signing.Scheme{scheme},
//		UnsignedBody: true, // see below: fetch the event from PayPal
//	})
//
// There is no secret. A request names the URL of the certificate, and the scheme fetches
// and keeps it. It does so only from PayPal's host, over TLS, without redirects, at public
// addresses, and bounded in size, time and number. The certificate must be valid now, for
// PayPal's name, and lead to a root that the system trusts. While it cannot be had, Verify
// returns [ErrCertificate], which is neither a right nor a wrong signature: a receiver
// answers 503, and PayPal sends again.
//
// Anybody can name certificates that are not there, and so use up the fetches for as long as
// they go on. A certificate that this Scheme has had is fetched again nonetheless. One that it
// has not had waits: after a start, and when PayPal takes a new one. Limit rates in front of
// the receiver if that matters.
//
// # What is signed, and what is not
//
// The signature covers the ID and the time of the transmission, the ID of the webhook, and the
// CRC-32 of the body. A CRC-32 finds errors of the wire, and no attacker: four bytes that are
// chosen well give any body the CRC-32 of another one. So whoever captures one request can send
// it with a body of their own, and the signature stays right. Nothing in the body is trusted
// here: its id and its type are Unsigned in the [signing.Facts], and a verifier asks for
// VerifierConfig.UnsignedBody.
//
// Take the id from the body (Facts.UnsignedID), and fetch that event from PayPal's API, with
// your own credentials: GET /v1/notifications/webhooks-events/{id}. Act on the answer alone, and
// once for each event's id. Deduplication by Facts goes by the ID of the transmission, which is
// signed: it stops the same request from being sent again, and does not tell events apart.
//
// Source: https://developer.paypal.com/api/rest/webhooks/rest/.
package paypal

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/surehook/surehook/internal/keyfetch"
	"github.com/surehook/surehook/signing"
)

// ErrCertificate: the certificate could not be had, so nobody knows whether the signature is
// right.
var ErrCertificate = errors.New("paypal: the certificate could not be had")

// Config has the optional settings of a Scheme. The zero value and nil are valid.
type Config struct {
	// Sandbox takes the webhooks of PayPal's sandbox, and no others.
	Sandbox bool

	// MaxAge is how long after the time of its transmission a request is taken.
	// Defaults to 73 h: PayPal goes on trying for 3 days.
	MaxAge time.Duration

	// Roots are those to which the certificate must lead. Defaults to the system's.
	Roots *x509.CertPool
	// Intermediates are certificates between PayPal's and a root, besides those that PayPal's
	// host has in the same file.
	Intermediates []*x509.Certificate

	// Certificate is used in place of PayPal's, for tests: nothing is fetched.
	Certificate *x509.Certificate

	// Timeout bounds the fetching of one certificate.
	// Defaults to 3 s.
	Timeout time.Duration

	// Now is the clock of the certificates' cache and validity. Defaults to time.Now.
	Now func() time.Time
}

// Scheme verifies PayPal's requests. It is safe for concurrent use, and starts nothing.
type Scheme struct {
	webhook string
	cfg     Config
	client  *keyfetch.Client
	cache   *keyfetch.Cache[*rsa.PublicKey]
}

var (
	_ signing.FactReader = (*Scheme)(nil)
	_ signing.OwnKeys    = (*Scheme)(nil)
)

const (
	idHeader        = "Paypal-Transmission-Id"
	timeHeader      = "Paypal-Transmission-Time"
	signatureHeader = "Paypal-Transmission-Sig"
	urlHeader       = "Paypal-Cert-Url"
	algorithmHeader = "Paypal-Auth-Algo"

	algorithm     = "SHA256withRSA"
	defaultMaxAge = 73 * time.Hour
	maxSignature  = 1024 // bytes: of a key of 8192 bits
)

var (
	webhookForm = regexp.MustCompile(`^[A-Za-z0-9]{1,64}$`)
	idForm      = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)
	timeForm    = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$`)
)

// New returns the scheme for the webhook with this ID, which PayPal shows beside its URL. A nil
// cfg means all defaults. All problems are reported at once.
func New(webhookID string, cfg *Config) (*Scheme, error) {
	s := &Scheme{webhook: webhookID}
	if cfg != nil {
		s.cfg = *cfg
	}
	var problems []error
	if !webhookForm.MatchString(webhookID) {
		problems = append(problems, errors.New("paypal: the webhook's ID must be letters and digits, as PayPal shows it, such as 4JH86294D6297924G"))
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
	if s.cfg.MaxAge < time.Second || s.cfg.Timeout < 0 {
		problems = append(problems, fmt.Errorf("paypal: Config.MaxAge is %v and Timeout %v: MaxAge must be at least 1s, and Timeout positive", s.cfg.MaxAge, s.cfg.Timeout))
	}
	if c := s.cfg.Certificate; c != nil {
		if _, ok := c.PublicKey.(*rsa.PublicKey); !ok {
			problems = append(problems, errors.New("paypal: Config.Certificate has no RSA key: PayPal signs with RSA"))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	s.client = keyfetch.NewClient([]string{s.host()}, &keyfetch.ClientConfig{Timeout: s.cfg.Timeout, MaxBytes: maxCertificates})
	s.cache = keyfetch.NewCache(s.download, &keyfetch.CacheConfig{KeepFor: keepFor, Now: s.cfg.Now})
	return s, nil
}

// Name returns "paypal".
func (s *Scheme) Name() string { return "paypal" }

// OwnKeys says that the scheme needs no keyring.
func (s *Scheme) OwnKeys() {}

// CoversBody is false: see the package's documentation.
func (s *Scheme) CoversBody() bool { return false }

// ReplayDefence is [signing.TimeWindow]: of Config.MaxAge.
func (s *Scheme) ReplayDefence() signing.ReplayDefence { return signing.TimeWindow }

// stated is what the headers say, before anything of it is verified.
type stated struct {
	id, time  string
	at        time.Time
	url       string
	signature []byte
}

// Precheck implements [signing.Scheme].
func (s *Scheme) Precheck(h http.Header, now time.Time, tolerance time.Duration) error {
	_, err := s.read(h, now, tolerance)
	return err
}

func (s *Scheme) read(h http.Header, now time.Time, tolerance time.Duration) (r stated, err error) {
	if s == nil || s.cache == nil { // a zero Scheme
		return r, signing.ErrNoValidKey
	}
	var signature, named string
	for _, header := range []struct {
		name string
		to   *string
		kind error
	}{
		{signatureHeader, &signature, signing.ErrNotSigned}, {idHeader, &r.id, signing.ErrMissingHeader}, {timeHeader, &r.time, signing.ErrMissingHeader},
		{urlHeader, &r.url, signing.ErrMissingHeader}, {algorithmHeader, &named, signing.ErrMissingHeader},
	} {
		if *header.to, err = signing.OnlyHeader(h, header.name, header.kind); err != nil {
			return r, err
		}
	}
	r.at, err = time.Parse(time.RFC3339, r.time)
	switch {
	case !idForm.MatchString(r.id):
		return r, malformed(idHeader, "is malformed: it has 1 to 64 letters, digits and hyphens")
	case err != nil || !timeForm.MatchString(r.time):
		return r, malformed(timeHeader, "is malformed: it is like 2015-05-18T15:45:13Z")
	case named != algorithm:
		return r, malformed(algorithmHeader, "is not "+algorithm+", which alone is taken")
	case !s.isCertificateURL(r.url):
		return r, malformed(urlHeader, "is not one of PayPal's: it must be https://"+s.host()+certificatePath+" and the certificate's name")
	}
	if r.signature, err = base64.StdEncoding.Strict().DecodeString(signature); err != nil || len(r.signature) == 0 || len(r.signature) > maxSignature || strings.ContainsAny(signature, "\r\n") {
		return r, malformed(signatureHeader, "is malformed: it must be base64")
	}
	// Sub is limited to what a Duration holds, and does not wrap round.
	most, skew := s.cfg.MaxAge, now.Sub(r.at)
	if skew < 0 {
		most = tolerance
	}
	if tolerance < 0 || skew.Abs() > most {
		return r, &signing.TimestampError{Timestamp: r.at, Skew: skew.Truncate(time.Second), Tolerance: most}
	}
	return r, nil
}

func malformed(header, problem string) error {
	return signing.NewHeaderError(signing.ErrMalformedHeader, header, problem)
}

// Verify implements [signing.Scheme]. It looks at everything else first, and fetches a
// certificate only for a request that has it right. Besides package signing's errors it returns
// [ErrCertificate]. The keyring is not used.
func (s *Scheme) Verify(m signing.Message, _ *signing.Keyring, now time.Time, tolerance time.Duration) (signing.Verified, error) {
	r, err := s.read(m.Header, now, tolerance)
	if err != nil {
		return signing.Verified{}, err
	}
	key, name, err := s.key(r.url)
	if err != nil {
		return signing.Verified{}, fmt.Errorf("%w: %w", ErrCertificate, err)
	}
	sum := sha256.Sum256([]byte(s.text(r, m.Body)))
	if rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], r.signature) != nil {
		return signing.Verified{}, signing.ErrSignatureMismatch
	}
	return signing.Verified{Scheme: s.Name(), KeyID: name, Timestamp: r.at.UTC(), ID: r.id}, nil
}

// text is what is signed. None of its parts can have a bar, so that it cannot be split otherwise.
func (s *Scheme) text(r stated, body []byte) string {
	return r.id + "|" + r.time + "|" + s.webhook + "|" + strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10)
}

// Sign returns an error: only PayPal has the keys.
func (s *Scheme) Sign(http.Header, string, time.Time, []byte, *signing.Keyring) error {
	return fmt.Errorf("%w: only PayPal can sign its webhooks", signing.ErrSecretUnsuited)
}

// Facts implements [signing.FactReader]. The ID is that of the transmission, and the time that
// of the transmission; the id and the type of the event are Unsigned.
func (s *Scheme) Facts(m signing.Message, v signing.Verified) signing.Facts {
	f := signing.Facts{ID: v.ID, Time: v.Timestamp}
	var event struct {
		ID   string `json:"id"`
		Type string `json:"event_type"`
	}
	if json.Unmarshal(m.Body, &event) == nil {
		f.UnsignedID, f.UnsignedType = signing.Unsigned(event.ID), signing.Unsigned(event.Type)
	}
	return f.Of(m)
}
