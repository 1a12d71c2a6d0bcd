package dispatch

import (
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/post"
)

// prepare prepares a request as its subscription's settings ask, and opens the secrets that
// are sealed in them. s may be nil.
func prepare(k *sender.Keys, p *post.Poster, r post.Request, s *sender.Settings) (post.Exchange, error) {
	if s != nil {
		if err := s.Unreadable(); err != nil {
			return post.Exchange{}, fmt.Errorf("%w (subscription %q)", err, r.Subscription)
		}
		header, err := k.Headers(r.Subscription, s.Headers)
		if err != nil {
			return post.Exchange{}, err
		}
		r.Header, r.Timeout, r.Proxy, r.SealedCertificate = header, s.Timeout, s.Proxy, s.SealedCertificate
	}
	x, err := p.Prepare(&r, func() (*tls.Certificate, error) { return k.Certificate(r.Subscription, r.SealedCertificate) })
	if errors.Is(err, post.ErrProbed) {
		err = errProxyProbed
	}
	return x, err
}
