package sns

import (
	"context"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/surehook/surehook/internal/guard"
)

// certificates fetches certificates and keeps them.
//
// Anybody who knows a topic's name can make a request name any file on Amazon's host. So the
// files that are not there are remembered too, a few fetches are made in a row, and then one at intervals.
type certificates struct {
	client *http.Client
	now    func() time.Time
	flight singleflight.Group

	mu        sync.Mutex
	kept      map[string]kept
	remaining int
	at        time.Time // when remaining had this value
}

type kept struct {
	cert  *x509.Certificate // nil: it could not be had
	err   error
	until time.Time
}

const (
	maxKept        = 16
	maxCertificate = 16 << 10
	keepFor        = 24 * time.Hour
	keepFailure    = 10 * time.Second
	fetchesAtOnce  = 8
	fetchEvery     = 10 * time.Second
)

func newCertificates(timeout time.Duration, now func() time.Time) *certificates {
	dialer := &net.Dialer{Timeout: timeout, ControlContext: guard.Policy{}.Control}
	return &certificates{
		now:  now,
		kept: map[string]kept{},
		client: &http.Client{
			Timeout: timeout,
			Transport: &http.Transport{ // without a proxy, which would dial in place of the guard
				DialContext:            dialer.DialContext,
				TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
				TLSHandshakeTimeout:    timeout,
				MaxResponseHeaderBytes: maxCertificate,
				DisableKeepAlives:      true,
				ForceAttemptHTTP2:      false,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

var (
	certificatePath = regexp.MustCompile(`^/SimpleNotificationService-[0-9a-f]{1,64}\.pem$`)
	errURL          = errors.New("sns: SigningCertURL is not one of Amazon's for the region of the topic")
)

// hostOf is Amazon's host for the region of a topic, whose form was checked.
func hostOf(topic string) string {
	parts := strings.SplitN(topic, ":", 5)
	host := "sns." + parts[3] + ".amazonaws.com"
	if parts[1] == "aws-cn" {
		host += ".cn"
	}
	return host
}

// certificateURL takes one form alone, letter by letter.
func certificateURL(text, topic string) (string, error) {
	path, found := strings.CutPrefix(text, "https://"+hostOf(topic))
	if !found || !certificatePath.MatchString(path) {
		return "", errURL
	}
	return text, nil
}

func (c *certificates) get(u string) (*x509.Certificate, error) {
	if k, ok := c.look(u); ok {
		return k.cert, k.err
	}
	// Those who want the same at the same time share one fetch.
	_, _, _ = c.flight.Do(u, func() (any, error) {
		if _, ok := c.look(u); ok {
			return nil, nil
		}
		c.keep(u, c.fetch(u))
		return nil, nil
	})
	k, ok := c.look(u)
	if !ok {
		return nil, errors.New("sns: too many certificates are asked for at once")
	}
	return k.cert, k.err
}

func (c *certificates) look(u string) (kept, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.kept[u]
	return k, ok && c.now().Before(k.until)
}

// keep makes room by forgetting failures first, and then what ends first.
func (c *certificates) keep(u string, k kept) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.kept) >= maxKept {
		var oldest string
		for name, other := range c.kept {
			if oldest == "" || other.until.Before(c.kept[oldest].until) {
				oldest = name
			}
		}
		delete(c.kept, oldest)
	}
	c.kept[u] = k
}

func (c *certificates) allow() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if c.at.IsZero() || now.Before(c.at) {
		c.remaining, c.at = fetchesAtOnce, now
	}
	if more := int(now.Sub(c.at) / fetchEvery); more > 0 {
		c.remaining, c.at = min(fetchesAtOnce, c.remaining+more), now
	}
	if c.remaining == 0 {
		return false
	}
	c.remaining--
	return true
}

func (c *certificates) fetch(u string) kept {
	if !c.allow() {
		return kept{err: errors.New("sns: too many certificates were asked for lately"), until: c.now().Add(time.Second)}
	}
	cert, err := c.download(u)
	if err != nil {
		return kept{err: err, until: c.now().Add(keepFailure)}
	}
	until := c.now().Add(keepFor)
	if cert.NotAfter.Before(until) {
		until = cert.NotAfter
	}
	return kept{cert: cert, until: until}
}

func (c *certificates) download(u string) (*x509.Certificate, error) {
	text, err := c.read(context.Background(), u)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("sns: what Amazon has there is no certificate in PEM")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("sns: what Amazon has there is no certificate: %w", err)
	}
	if _, ok := cert.PublicKey.(*rsa.PublicKey); !ok {
		return nil, errors.New("sns: the certificate has no RSA key")
	}
	if now := c.now(); now.Before(cert.NotBefore) || now.After(cert.NotAfter) {
		return nil, errors.New("sns: the certificate is not valid now")
	}
	return cert, nil
}

func (c *certificates) read(ctx context.Context, u string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		return nil, err
	}
	res, err := c.client.Do(req)
	if err != nil {
		var inner *url.Error
		if errors.As(err, &inner) {
			err = inner.Err // without the URL, which may have a token
		}
		return nil, fmt.Errorf("sns: asking Amazon: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("sns: Amazon answered %d", res.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxCertificate+1))
	if err != nil {
		return nil, fmt.Errorf("sns: reading Amazon's answer: %w", err)
	}
	if len(text) > maxCertificate {
		return nil, fmt.Errorf("sns: Amazon's answer has more than %d bytes", maxCertificate)
	}
	return text, nil
}

// Confirm answers a SubscriptionConfirmation that was verified, by asking for its
// SubscribeURL: then the topic's notifications come. It goes to Amazon's host of the topic's
// region alone, under the same bounds as certificates. Call it from the handler, for events
// of the type SubscriptionConfirmation. It may be called again.
func (s *Scheme) Confirm(ctx context.Context, body []byte) error {
	msg, err := parse(body)
	if err != nil {
		return err
	}
	switch {
	case msg.fields["Type"] != confirm:
		return errors.New("sns: this is no SubscriptionConfirmation")
	case !topicForm.MatchString(msg.fields["TopicArn"]) || !s.isOurs(msg.fields["TopicArn"]):
		return errors.New("sns: the topic is none of those that were given to New")
	case !strings.HasPrefix(msg.fields["SubscribeURL"], "https://"+hostOf(msg.fields["TopicArn"])+"/?"):
		return errors.New("sns: SubscribeURL is not one of Amazon's for the region of the topic")
	}
	_, err = s.certificates.read(ctx, msg.fields["SubscribeURL"])
	return err
}

func (s *Scheme) isOurs(topic string) bool {
	for _, t := range s.topics {
		if t == topic {
			return true
		}
	}
	return false
}
