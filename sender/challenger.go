package sender

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/surehook/surehook/signing"
)

// Challenger makes sure that whoever answers at a callback URL wants the events of its
// subscriber. Package challenge has one. It must be safe for concurrent use.
type Challenger interface {
	// Challenge asks a URL once, outside of any transaction. It returns nil if the answer
	// proves that the subscriber wants the events. An error that matches ErrChallenge is for
	// the owner of the URL.
	Challenge(ctx context.Context, c Challenge) error
}

// Challenge is what a Challenger is to ask, with all that is sealed in the subscription
// opened. Printed, logged or encoded as JSON it shows whom it is about, and nothing else.
type Challenge struct {
	Subscriber   string   // its id
	Subscription string   // its id; it need not be stored yet
	URL          string   // as the subscription is to have it
	Settings     Settings // likewise

	Keyring     *signing.Keyring // the subscriber's
	Header      http.Header      // Settings.Headers
	Certificate *tls.Certificate // of Settings.SealedCertificate; nil: none
}

// String shows whom the challenge is about, and nothing else.
func (c Challenge) String() string {
	return fmt.Sprintf("[challenge of subscription %q of subscriber %q]", c.Subscription, c.Subscriber)
}

// Format writes String, whatever the verb.
func (c Challenge) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.String()) }

// MarshalJSON encodes String: a challenge is not for keeping.
func (c Challenge) MarshalJSON() ([]byte, error) { return json.Marshal(c.String()) }

// LogValue shows String.
func (c Challenge) LogValue() slog.Value { return slog.StringValue(c.String()) }
