package receivertest

import (
	"bytes"
	"cmp"
	"net/http"
	"testing"
	"time"

	"github.com/surehook/surehook/signing"
)

// Sender signs events with one secret. It is safe for concurrent use.
type Sender struct {
	t    testing.TB
	keys *signing.Keyring
	cfg  SenderConfig
}

// SenderConfig has the optional settings of a Sender. With Schemes and Encode the Sender
// stands in for another service.
type SenderConfig struct {
	// Schemes sign each request.
	// Defaults to signing.DefaultSchemes().
	Schemes []signing.Scheme

	// Encode makes the body of an event, for senders whose bodies have another form. It
	// must make the same bytes at every call.
	// Defaults to the form of this module.
	Encode func(Event) ([]byte, error)

	// ContentType is the header of this name.
	// Defaults to application/json.
	ContentType string

	// Path is where the receiver stands, with the query if there is one: the place of
	// requests that Serve, Message and Hostile make. It begins with a slash. Post is given a
	// URL.
	// Defaults to /webhooks.
	Path string

	// Now is the clock of the timestamps.
	// Defaults to time.Now.
	Now func() time.Time

	// Client posts requests.
	// Defaults to http.DefaultClient.
	Client *http.Client
}

// NewSender makes a Sender. A malformed Path, and an event that cannot be signed, end the
// test t.
func NewSender(t testing.TB, secret signing.Secret, cfg *SenderConfig) *Sender {
	t.Helper()
	s := &Sender{t: t, keys: keyring(t, secret)}
	if cfg != nil {
		s.cfg = *cfg
	}
	if s.cfg.Schemes == nil {
		s.cfg.Schemes = signing.DefaultSchemes()
	}
	if s.cfg.Now == nil {
		s.cfg.Now = time.Now
	}
	if s.cfg.Encode == nil {
		s.cfg.Encode = Event.encode
	}
	s.cfg.ContentType = cmp.Or(s.cfg.ContentType, "application/json")
	if s.cfg.Path = cmp.Or(s.cfg.Path, "/webhooks"); s.cfg.Path[0] != '/' {
		t.Fatalf("receivertest: SenderConfig.Path is %q: it must begin with a slash, such as /webhooks", s.cfg.Path)
	}
	s.cfg.Client = cmp.Or(s.cfg.Client, http.DefaultClient)
	return s
}

func keyring(t testing.TB, secret signing.Secret) *signing.Keyring {
	t.Helper()
	keys, err := signing.NewKeyring(signing.Key{Secret: secret})
	if err != nil {
		t.Fatalf("receivertest: %v", err)
	}
	return keys
}

// Request returns the request that delivers ev, to be changed and then sent, any
// number of times.
func (s *Sender) Request(ev Event) *Request {
	s.t.Helper()
	body, err := s.cfg.Encode(ev)
	if err != nil {
		s.t.Fatalf("receivertest: the event cannot be encoded: %v", err)
	}
	return s.Raw(ev.ID, body)
}

// Raw returns a request that delivers any bytes, signed under any id.
func (s *Sender) Raw(id string, body []byte) *Request {
	return &Request{
		sender: s, keys: s.keys, id: id, method: http.MethodPost,
		body: bytes.Clone(body), attempt: 1,
	}
}
