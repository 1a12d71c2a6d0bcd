package receiver

import "encoding/json"

// TwitchRevocation is the Type of the event by which Twitch says that it ends a subscription.
// Its Data are the subscription, whose status says why.
const TwitchRevocation = "revocation"

// TwitchEnvelope reads what Twitch EventSub posts, for a verifier with the scheme of the
// vendor twitch:
//
//   - notifications: the Type is that of the subscription, such as channel.follow, and the
//     Data are the event, or the list of them where a subscription has batches;
//   - revocations: the Type is [TwitchRevocation].
//
// The question webhook_callback_verification gets its answer by [TwitchChallenge].
//
// Source: https://dev.twitch.tv/docs/eventsub/handling-webhook-events.
func TwitchEnvelope() *Envelope {
	return &Envelope{TextChallenge: TwitchChallenge, DataField: "event", Read: readTwitch}
}

// TwitchChallenge returns the text with which Twitch's webhook_callback_verification is
// answered, for [Envelope].TextChallenge. Twitch signs the question, so that nobody else gets
// an answer.
func TwitchChallenge(body []byte) (answer string, is bool) {
	var question struct {
		Challenge    string          `json:"challenge"`
		Subscription json.RawMessage `json:"subscription"`
	}
	if json.Unmarshal(body, &question) != nil || question.Subscription == nil {
		return "", false
	}
	return question.Challenge, question.Challenge != ""
}

func readTwitch(ev *Event) error {
	if ev.Data != nil {
		return nil
	}
	if ev.Data = memberAt(ev.Body, "events"); ev.Data == nil {
		ev.Type, ev.Data = TwitchRevocation, memberAt(ev.Body, "subscription")
	}
	return nil
}
