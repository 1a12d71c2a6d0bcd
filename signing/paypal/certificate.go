package paypal

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

const (
	certificatePath = "/v1/notifications/certs/"
	maxCertificates = 64 << 10 // bytes: of a certificate and those above it
	maxChain        = 8
	keepFor         = 24 * time.Hour
)

var nameForm = regexp.MustCompile(`^CERT-[0-9a-zA-Z-]{1,64}$`)

// host is the one that has the certificates.
func (s *Scheme) host() string {
	if s.cfg.Sandbox {
		return "api.sandbox.paypal.com"
	}
	return "api.paypal.com"
}

// subject is the name for which the certificates are, as PayPal's own libraries check it.
func (s *Scheme) subject() string {
	if s.cfg.Sandbox {
		return "messageverificationcerts.sandbox.paypal.com"
	}
	return "messageverificationcerts.paypal.com"
}

// isCertificateURL takes one form alone, letter by letter.
func (s *Scheme) isCertificateURL(text string) bool {
	name, found := strings.CutPrefix(text, "https://"+s.host()+certificatePath)
	return found && nameForm.MatchString(name)
}

// key returns the key of the certificate at that URL, and the certificate's name.
func (s *Scheme) key(url string) (*rsa.PublicKey, string, error) {
	if c := s.cfg.Certificate; c != nil {
		return c.PublicKey.(*rsa.PublicKey), "fixed", nil // New has checked it
	}
	key, err := s.cache.Get(url)
	return key, url[strings.LastIndexByte(url, '/')+1:], err
}

// download returns the key of a certificate that leads to a root, and when it ends.
func (s *Scheme) download(ctx context.Context, url string) (*rsa.PublicKey, time.Time, error) {
	text, err := s.client.Get(ctx, url)
	if err != nil {
		return nil, time.Time{}, err
	}
	chain, err := parseChain(text)
	if err != nil {
		return nil, time.Time{}, err
	}
	return s.check(chain)
}

// parseChain reads PayPal's certificate and those above it, if they are there too.
func parseChain(text []byte) (chain []*x509.Certificate, err error) {
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		if text = rest; block.Type != "CERTIFICATE" || len(chain) == maxChain {
			return nil, fmt.Errorf("paypal: what PayPal has there are not 1 to %d certificates in PEM", maxChain)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("paypal: what PayPal has there is no certificate: %w", err)
		}
		chain = append(chain, cert)
	}
	if chain == nil {
		return nil, errors.New("paypal: what PayPal has there is no certificate in PEM")
	}
	return chain, nil
}

func (s *Scheme) check(chain []*x509.Certificate) (*rsa.PublicKey, time.Time, error) {
	between := x509.NewCertPool()
	for _, c := range append(chain[1:], s.cfg.Intermediates...) {
		between.AddCert(c)
	}
	leads, err := chain[0].Verify(x509.VerifyOptions{
		DNSName: s.subject(), Roots: s.cfg.Roots, Intermediates: between, CurrentTime: s.cfg.Now(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("paypal: the certificate is not valid for %s: %w", s.subject(), err)
	}
	key, ok := chain[0].PublicKey.(*rsa.PublicKey)
	if !ok || key.N.BitLen() < 2048 || key.N.BitLen() > 8*maxSignature {
		return nil, time.Time{}, errors.New("paypal: the certificate has no RSA key of 2048 to 8192 bits")
	}
	var until time.Time // the first end on the way that lasts longest
	for _, way := range leads {
		end := way[0].NotAfter
		for _, c := range way {
			if c.NotAfter.Before(end) {
				end = c.NotAfter
			}
		}
		if end.After(until) {
			until = end
		}
	}
	return key, until, nil
}
