package sender

import (
	"crypto/tls"
	"errors"
	"fmt"
)

// prepare has a request prepared as its subscription's settings ask, which may be nil, and
// opens what is sealed in them.
func (k *Keys) prepare(p *poster, r postRequest, s *Settings) (postExchange, error) {
	if s != nil {
		if err := s.Unreadable(); err != nil {
			return postExchange{}, fmt.Errorf("%w (subscription %q)", err, r.Subscription)
		}
		header, err := k.openHeaders(r.Subscription, s.Headers)
		if err != nil {
			return postExchange{}, err
		}
		r.Header, r.Timeout, r.Proxy, r.SealedCertificate = header, s.Timeout, s.Proxy, s.SealedCertificate
	}
	x, err := p.Prepare(&r, func() (*tls.Certificate, error) { return k.openCertificate(r.Subscription, r.SealedCertificate) })
	if errors.Is(err, errProbed) {
		err = errProxyProbed
	}
	return x, err
}
