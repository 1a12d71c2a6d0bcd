package vendors

import (
	"time"

	"github.com/surehook/surehook/signing"
)

// public are the senders that sign with a private key, and those whose scheme is their own.
func public() []Vendor {
	return []Vendor{
		{
			Name: "adyen", Title: "Adyen, payment webhooks", Kind: Adyen, Key: HexDigits,
			DataField: "notificationItems", Retries: "after 2, 5, 10, 15, 30 min, 1, 2 and 4 h, then every 8 h for 7 days", Success: "2xx within 10 s", EmptyAnswer: true,
			Docs:     "https://docs.adyen.com/development-resources/webhooks/verify-hmac-signatures",
			Evidence: Published, Read: compared, Source: "the example of Adyen's documentation; adyen-node-api-library, -dotnet, -java and -ruby, test values",
			Note: "The signature covers eight values of the item, and not the whole body: take nothing else from it. A request with several items is refused; those with JSON have one.",
		},
		{
			Name: "braintree", Title: "Braintree", Kind: Braintree, Body: Form, Retries: "hourly for 24 h, in production", Success: "2xx within 30 s",
			Docs:     "https://developer.paypal.com/braintree/docs/guides/webhooks/parse",
			Evidence: Library, Read: compared, Source: "braintree (npm) signs and verifies it",
			Note: "The secret is the private key. The document is XML: the field bt_payload of the form is its base64.",
		},
		{
			Name: "discord", Title: "Discord", Description: signing.Discord().Description(), Key: Ed25519Hex,
			Retries: "webhook events for 10 min with backoff", Success: "204 or an interaction's answer within 3 s", EmptyAnswer: true, Docs: "https://docs.discord.com/developers/interactions/overview",
			Evidence: Library, Read: compared, Source: "discordgo and discord-interactions (npm) verify it",
			Note: "It sends wrong signatures on purpose and wants 401. A PING is to be answered with {\"type\":1}: by Envelope.Challenge.",
		},
		{
			Name: "telnyx", Title: "Telnyx", Key: Ed25519Base64,
			Description: signing.Description{
				Name: "telnyx", SignatureHeader: "Telnyx-Signature-Ed25519", Algorithm: signing.Ed25519, Encoding: signing.Base64, TimestampHeader: "Telnyx-Timestamp", Signed: "{timestamp}|{body}",
				IDField: "data.id", TypeField: "data.event_type", TimeField: "data.occurred_at",
			},
			DataField: "data.payload", ObjectType: "data.record_type", ObjectID: "data.payload.id", Window: minutes5, Retries: "3 times", Success: "2xx within 2 s", Docs: "https://developers.telnyx.com/docs/messaging/messages/receiving-webhooks",
			Evidence: Library, Read: compared, Source: "telnyx (npm) verifies it",
		},
		{
			Name: "sendgrid", Title: "SendGrid Event Webhook", Key: ECDSA,
			Description: signing.Description{
				Name: "sendgrid", SignatureHeader: "X-Twilio-Email-Event-Webhook-Signature", Algorithm: signing.ECDSAP256, Encoding: signing.Base64,
				TimestampHeader: "X-Twilio-Email-Event-Webhook-Timestamp", Signed: "{timestamp}{body}",
			},
			Retries: "up to 24 h", Success: "2xx", Docs: "https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/getting-started-event-webhook-security-features",
			Evidence: Published, Read: compared, Source: "sendgrid-nodejs and sendgrid-go, test values",
			Note: "A request has a list of events.",
		},
		{
			Name: "paypal", Title: "PayPal", Kind: PayPal, Key: Certificate, DataField: "resource", ObjectType: "resource_type", ObjectID: "resource.id", Window: 73 * time.Hour,
			Retries: "up to 25 times over 3 days", Success: "2xx", Docs: "https://developer.paypal.com/api/rest/webhooks/rest/",
			Note: "The scheme is package signing/paypal, with the ID of your webhook. It fetches PayPal's certificates. The signature covers a CRC-32 of the body, and so nothing of it: fetch the event by its id. The text that is signed is that of PayPal's samples; nobody has compared a signature.",
		},
		{
			Name: "sns", Title: "Amazon SNS", Kind: SNS, Key: Certificate, Body: PlainJSON, DataField: "Message", Challenge: OwnURL, Window: 65 * time.Minute,
			Retries: "3 times, 20 s apart; as the topic's delivery policy says, for an hour at most", Success: "2xx within 15 s", Docs: "https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html",
			Evidence: Library, Read: compared, Source: "sns-validator (npm), Amazon's own, agrees with package signing/sns",
			Note: "The scheme is package signing/sns, with the topics that count. It fetches Amazon's certificates. Scheme.Confirm opens the URL of a SubscriptionConfirmation.",
		},
		{
			Name: "twilio", Title: "Twilio", Kind: Twilio, Body: JSONOrForm, Retries: "none by default", Success: "2xx within 15 s", EmptyAnswer: true, Docs: "https://www.twilio.com/docs/usage/security#validating-requests",
			Evidence: Published, Read: compared, Source: "twilio-go, test values",
		},
	}
}
