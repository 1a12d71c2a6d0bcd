package receiver

import (
	"encoding/hex"
	"encoding/json"

	"github.com/surehook/surehook/signing"
)

// ZoomChallenge answers Zoom's endpoint.url_validation, for [Envelope].Challenge. The secret
// is the one with which Zoom signs. The question is signed, so that nobody else gets an
// answer.
//
// Source: https://developers.zoom.us/docs/api/webhooks/#validate-your-webhook-endpoint.
func ZoomChallenge(secret signing.Secret) func(body []byte) (answer json.RawMessage, is bool) {
	return func(body []byte) (json.RawMessage, bool) {
		var question struct {
			Event   string `json:"event"`
			Payload struct {
				PlainToken string `json:"plainToken"`
			} `json:"payload"`
		}
		if json.Unmarshal(body, &question) != nil || question.Event != "endpoint.url_validation" || question.Payload.PlainToken == "" {
			return nil, false
		}
		answer, err := json.Marshal(map[string]string{
			"plainToken": question.Payload.PlainToken, "encryptedToken": hex.EncodeToString(macOf(secret, question.Payload.PlainToken)),
		})
		return answer, err == nil
	}
}
