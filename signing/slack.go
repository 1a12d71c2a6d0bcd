package signing

// Slack returns the scheme of Slack's requests:
//
//	X-Slack-Request-Timestamp: 1531420618
//	X-Slack-Signature: v0=a2114d57…
//
// where the signature is the hex HMAC-SHA256 of "v0:TIMESTAMP:BODY", keyed by the text
// of the app's signing secret: read it with [ParseTextSecret]. There is one signature,
// so that while a secret is regenerated the receiver's keyring holds both.
//
// Replay defence: [TimeWindow], 300 seconds. The events API has the event's id, type
// and time in its JSON body. Commands and interactions come as forms and have none:
// their [Facts] are empty.
//
// Source: https://docs.slack.dev/authentication/verifying-requests-from-slack, with a
// published value. slack-go verifies the signatures of this scheme, and this scheme
// verifies slack-go's example.
func Slack() *Described {
	return describe(Description{
		Name:            "slack",
		SignatureHeader: "X-Slack-Signature",
		SignaturePrefix: "v0=",
		TimestampHeader: "X-Slack-Request-Timestamp",
		Signed:          "v0:{timestamp}:{body}",
		IDField:         "event_id",
		TypeField:       "event.type",
		TimeField:       "event_time",
	})
}
