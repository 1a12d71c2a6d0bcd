package sns

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/surehook/surehook/internal/keyfetch"
)

// certificates fetches certificates and keeps them.
//
// Anybody who knows a topic's name can make a request name any file on Amazon's host. So
// the files that are not there are remembered too, a few fetches are made in a row, and
// then one at intervals. A certificate that was there is fetched again beside them.
type certificates struct {
	client *keyfetch.Client
	cache  *keyfetch.Cache[*x509.Certificate]
	now    func() time.Time
}

const (
	maxCertificate = 16 << 10
	keepFor        = 24 * time.Hour
)

func newCertificates(topics []string, timeout time.Duration, now func() time.Time) *certificates {
	var hosts []string
	for _, topic := range topics {
		hosts = append(hosts, hostOf(topic))
	}
	c := &certificates{client: keyfetch.NewClient(hosts, &keyfetch.ClientConfig{Timeout: timeout, MaxBytes: maxCertificate}), now: now}
	c.cache = keyfetch.NewCache(c.download, &keyfetch.CacheConfig{KeepFor: keepFor, Now: now})
	return c
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

// download returns the certificate, and when it ends.
func (c *certificates) download(ctx context.Context, u string) (*x509.Certificate, time.Time, error) {
	cert, err := c.parsed(ctx, u)
	if err != nil {
		return nil, time.Time{}, err
	}
	return cert, cert.NotAfter, nil
}

func (c *certificates) parsed(ctx context.Context, u string) (*x509.Certificate, error) {
	text, err := c.client.Get(ctx, u)
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
	case !topicForm.MatchString(msg.fields["TopicArn"]) || !slices.Contains(s.topics, msg.fields["TopicArn"]):
		return errors.New("sns: the topic is not one of those that were given to New")
	case !strings.HasPrefix(msg.fields["SubscribeURL"], "https://"+hostOf(msg.fields["TopicArn"])+"/?"):
		return errors.New("sns: SubscribeURL is not one of Amazon's for the region of the topic")
	}
	_, err = s.certificates.client.Get(ctx, msg.fields["SubscribeURL"])
	return err
}
