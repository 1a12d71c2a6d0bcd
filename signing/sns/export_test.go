package sns

import "net/http"

// SetTransport has certificates come from a test instead of Amazon.
func (s *Scheme) SetTransport(t http.RoundTripper) { s.certificates.client.Transport = t }

// CertificateURL is the check of URLs.
func CertificateURL(text, topic string) (string, error) { return certificateURL(text, topic) }

// Text is what a body's signature covers, or nil.
func Text(body []byte) []byte {
	m, err := parse(body)
	if err != nil {
		return nil
	}
	return m.text()
}
