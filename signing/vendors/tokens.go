package vendors

import (
	"time"

	"github.com/surehook/surehook/signing"
)

// tokens are the senders whose requests carry a JSON Web Token. Package signing/jose, a
// module of its own, makes their schemes.
func tokens() []Vendor {
	const card = " A token does not cover the body: whoever gets hold of one can post any body with it until it expires."
	authorization := func(name string) signing.Description {
		return signing.Description{Name: name, SignatureHeader: "Authorization"}
	}
	return []Vendor{
		{
			Name: "atlassian-connect", Title: "Atlassian Connect", Kind: JWT, Description: authorization("atlassian-connect"), TokenCovers: "the method, path and query",
			Retries: "up to 5 times, on 408, 409, 425, 429 and 5xx", Success: "2xx within 30 s", Docs: "https://developer.atlassian.com/cloud/jira/platform/understanding-jwt-for-connect-apps/",
			Evidence: Library, Read: compared, Source: "atlassian-jwt 2.0.3: its token verifies, and its canonical requests are the same",
			Note: "The scheme is jose.AtlassianConnect, with the clientKey of an installation, whose shared secret is the key." + card,
		},
		{
			Name: "google-pubsub", Title: "Google Pub/Sub push", Kind: JWT, Key: PublicKeys, Description: authorization("google-pubsub"), DataField: "message", BodyID: "message.messageId",
			Retries: "until the message expires, 7 days by default, with backoff", Success: "102, 200, 201, 202 or 204 within the ack deadline, 10 s by default", Docs: "https://cloud.google.com/pubsub/docs/authenticate-push-subscriptions",
			Note: "The scheme is jose.PubSub, with the subscription's audience and the email of its service account; the keys are jose.GoogleKeys." + card + " The event's ID is message.messageId, because a repetition may have another deliveryAttempt.",
		},
		{
			Name: "messagebird", Title: "MessageBird, Bird", Kind: JWT, Description: signing.Description{Name: "messagebird", SignatureHeader: "Messagebird-Signature-Jwt"}, TokenSignsBody: true, TokenCovers: "the URL", Window: time.Minute,
			Success: "2xx", Docs: "https://developers.messagebird.com/api/#verifying-http-requests",
			Evidence: Published, Read: compared, Source: "messagebird-nodejs, reference values", Note: "The scheme is jose.MessageBird, with the URL to which it sends.",
		},
		{
			Name: "monday", Title: "monday.com", Kind: JWT, Description: authorization("monday"), Success: "200", Retries: "once a minute for 30 min",
			Docs: "https://developer.monday.com/apps/docs/integration-authorization", Note: "The scheme is jose.Monday, with the URL to which it sends." + card,
		},
		{
			Name: "plaid", Title: "Plaid", Kind: JWT, Key: PublicKeys, Description: signing.Description{Name: "plaid", SignatureHeader: "Plaid-Verification"}, TokenSignsBody: true, Window: minutes5,
			Retries: "up to 24 h with backoff", Success: "200 within 10 s", Docs: "https://plaid.com/docs/api/webhooks/webhook-verification/",
			Evidence: Published, Read: compared, Source: "a webhook and its key that a receiver has published",
			Note: "The scheme is jose.Plaid; the keys are jose.PlaidKeys. Bodies have no id: the token tells events apart, so that what Plaid signs anew when it sends it again has an effect again. Fetch what is new.",
		},
		{
			Name: "vonage", Title: "Vonage", Kind: JWT, Description: authorization("vonage"), TokenSignsBody: true, Window: minutes5,
			Success: "200", Docs: "https://developer.vonage.com/en/getting-started/concepts/webhooks",
			Note: "The scheme is jose.Vonage, with the account's signature secret, for signed webhooks.",
		},
	}
}
