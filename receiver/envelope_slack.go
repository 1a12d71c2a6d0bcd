package receiver

import (
	"encoding/json"
	"errors"
	"net/url"
)

// SlackEnvelope reads what Slack sends an app, for a verifier with [signing.Slack]:
//
//   - events: the Type is that of the inner event, such as app_mention, and the Data are
//     the inner event;
//   - interactions: the Type is theirs, such as block_actions, and the Data are the
//     payload;
//   - slash commands: the Type is slash_command, and the Data are the form's fields, each
//     a string.
//
// The question url_verification gets its answer. Everything else gets an empty body,
// because Slack shows users the answer to a command.
//
// Source: https://docs.slack.dev/apis/events-api, https://docs.slack.dev/interactivity.
func SlackEnvelope() *Envelope {
	return &Envelope{
		ContentTypes: []string{mediaJSON, mediaForm},
		Challenge:    slackChallenge,
		EmptyAnswer:  true,
		Read:         readSlack,
	}
}

func slackChallenge(body []byte) (json.RawMessage, bool) {
	var question struct {
		Type      string `json:"type"`
		Challenge string `json:"challenge"`
	}
	if json.Unmarshal(body, &question) != nil || question.Type != "url_verification" {
		return nil, false
	}
	answer, err := json.Marshal(map[string]string{"challenge": question.Challenge})
	return answer, err == nil
}

func readSlack(ev *Event) error {
	if validJSON(ev.Body) {
		if inner := memberAt(ev.Body, "event"); inner != nil {
			ev.Data = inner
		} else if kind, err := text(memberAt(ev.Body, "type")); err == nil {
			ev.Type = eventType(kind) // app_rate_limited
		}
		return nil
	}
	form, err := url.ParseQuery(string(ev.Body))
	if err != nil {
		return errors.New("the body is neither JSON nor a form")
	}
	payload := []byte(form.Get("payload"))
	if len(payload) == 0 {
		ev.Type = "slash_command"
		return nil
	}
	if !validJSON(payload) {
		return errors.New("the form's payload is not JSON")
	}
	kind, err := text(memberAt(payload, "type"))
	if err != nil {
		return errors.New("the form's payload has no type")
	}
	ev.Type, ev.Data = eventType(kind), payload
	return nil
}
