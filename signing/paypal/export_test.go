package paypal

import (
	"net/http"

	"github.com/surehook/surehook/signing"
)

// SetTransport has certificates come from a test instead of PayPal.
func (s *Scheme) SetTransport(t http.RoundTripper) { s.client.Transport = t }

// Text is what is signed.
func (s *Scheme) Text(m signing.Message) string {
	id, _ := signing.OnlyHeader(m.Header, idHeader, signing.ErrMissingHeader)
	at, _ := signing.OnlyHeader(m.Header, timeHeader, signing.ErrMissingHeader)
	return s.text(stated{id: id, time: at}, m.Body)
}
