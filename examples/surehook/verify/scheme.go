package verify

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/surehook/surehook/signing"
)

// candidates are the schemes whose signature header is in the request, of all that
// package signing has. url is what Square and Twilio were told to post to.
func candidates(m signing.Message, url string) ([]signing.Scheme, error) {
	all := []signing.Scheme{
		signing.TimestampBody{}, signing.StandardWebhooks{}, signing.Svix(), signing.Stripe(), signing.GitHub(), signing.Meta(),
		signing.Slack(), signing.Shopify(), signing.Paddle(), signing.Zendesk(), signing.Linear(), signing.Discord(),
		signing.Hook0(), signing.Hook0Body(), signing.ConvoySimple(), signing.ConvoyAdvanced(),
	}
	square, squareErr := signing.NewSquare(url)
	if squareErr == nil {
		all = append(all, square)
	}
	twilio, twilioErr := signing.NewTwilio(url)
	if twilioErr == nil {
		all = append(all, twilio)
	}
	var present []signing.Scheme
	for _, s := range all {
		if err := s.Precheck(m.Header, time.Time{}, signing.DefaultTolerance); !errors.Is(err, signing.ErrNotSigned) {
			present = append(present, s)
		}
	}
	if err := errors.Join(squareErr, twilioErr); err != nil && signsURL(m.Header) {
		return nil, fmt.Errorf("the sender has signed the URL, too: give -url as it is registered there: %w", err)
	}
	return present, nil
}

func signsURL(h http.Header) bool {
	return len(h.Values("X-Square-Hmacsha256-Signature"))+len(h.Values("X-Twilio-Signature")) > 0
}
