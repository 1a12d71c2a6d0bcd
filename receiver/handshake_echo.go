package receiver

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/surehook/surehook/signing"
)

const (
	oktaHeader         = "X-Okta-Verification-Challenge"
	originHeader       = "Webhook-Request-Origin"
	rateHeader         = "Webhook-Request-Rate"
	maxValidationToken = 1024
)

// answerValidation returns Microsoft Graph's token, which is a sentence.
func (h *Handshake) answerValidation(m signing.Message) (a Answer, is bool, err error) {
	values := queryOf(m)
	if !h.ValidationToken || !values.Has("validationToken") {
		return a, false, nil
	}
	token, err := once(values, "validationToken")
	if err == nil && !isSentence(token, maxValidationToken) {
		err = fmt.Errorf("receiver: a handshake's validationToken must have 1 to %d visible ASCII characters and spaces, and no markup", maxValidationToken)
	}
	if err != nil {
		return a, true, err
	}
	return plainText(token), true, nil
}

// isSentence takes what does no harm in an answer, wherever somebody shows it.
func isSentence(text string, limit int) bool {
	return text != "" && len(text) <= limit && !strings.ContainsFunc(text, func(c rune) bool {
		return c < ' ' || c > '~' || strings.ContainsRune("<>&\"'`\\", c)
	})
}

func answerOkta(asked []string) (a Answer, is bool, err error) {
	if len(asked) > 1 || !isSentence(asked[0], maxHandshakeAnswer) {
		return a, true, fmt.Errorf("receiver: a handshake's %s must be there once, with 1 to %d visible ASCII characters and spaces, and no markup", oktaHeader, maxHandshakeAnswer)
	}
	text, err := json.Marshal(map[string]string{"verification": asked[0]})
	if err != nil {
		return a, true, err
	}
	return harmless(mediaJSON, string(text)), true, nil
}

// answerOrigin allows a sender of CloudEvents to send. An OPTIONS request without an origin
// is no handshake.
func (h *Handshake) answerOrigin(m signing.Message) (a Answer, is bool, err error) {
	header := canonical(m.Header)
	asked := header[originHeader]
	if len(h.Origins) == 0 || len(asked) == 0 {
		return a, false, nil
	}
	allowed := ""
	for _, origin := range h.Origins {
		if origin == "*" || strings.EqualFold(origin, asked[0]) {
			allowed = origin
			break
		}
	}
	rate, err := h.rate(header[rateHeader])
	if allowed == "" || len(asked) > 1 || err != nil {
		return a, true, errors.Join(errors.New("receiver: a handshake's WebHook-Request-Origin is not one of Handshake.Origins, or its rate is not a number"), err)
	}
	return Answer{Status: http.StatusOK, Header: http.Header{
		"Allow": {http.MethodPost}, "Webhook-Allowed-Origin": {allowed}, "Webhook-Allowed-Rate": {rate},
	}}, true, nil
}

// rate is what is asked for, or less if less is allowed.
func (h *Handshake) rate(asked []string) (string, error) {
	limit := "*"
	if h.Rate > 0 {
		limit = strconv.Itoa(h.Rate)
	}
	if len(asked) == 0 {
		return limit, nil
	}
	n, err := strconv.ParseUint(asked[0], 10, 31)
	if err != nil || n == 0 || len(asked) > 1 {
		return "", errors.New("receiver: WebHook-Request-Rate must be there once, as a number above 0")
	}
	if h.Rate > 0 && n > uint64(h.Rate) {
		return limit, nil
	}
	return strconv.FormatUint(n, 10), nil
}
