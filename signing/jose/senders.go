package jose

import (
	"errors"
	"time"

	"github.com/surehook/surehook/signing"
)

// PubSub is the scheme of Google Pub/Sub's push subscriptions with authentication.
// audience is the subscription's: the push endpoint's URL unless it was set otherwise.
// email is the service account that the subscription authenticates as. It is what counts,
// since anybody at Google can have tokens made for any audience. keys are [GoogleKeys], or
// fixed ones.
//
// The token does not cover the body, see the package. A repetition's body may differ in
// deliveryAttempt: what tells messages apart is message.messageId, which is Unsigned.
//
// Source: https://cloud.google.com/pubsub/docs/authenticate-push-subscriptions
func PubSub(audience, email string, keys Keys) (signing.FactReader, error) {
	if audience == "" || email == "" {
		return nil, errors.New("jose: PubSub needs the subscription's audience and the email of its service account: without them anybody's subscription would pass")
	}
	return New(Token{
		Name: "google-pubsub", Header: "Authorization", Prefix: "Bearer ", Algorithm: RS256, Keys: keys,
		Issuers: []string{"https://accounts.google.com", "accounts.google.com"}, Audience: audience,
		Claims: map[string]string{"email": email}, True: []string{"email_verified"},
		IDField: "message.messageId",
	})
}

// Plaid is the scheme of Plaid's webhooks. keys are [PlaidKeys], or fixed ones.
//
// Plaid's bodies have neither an id nor a time, so that two events can have the same: the
// token tells them apart. A repetition that Plaid signs anew therefore has an effect again.
// Take an event as a hint to fetch what is new.
//
// Source: https://plaid.com/docs/api/webhooks/webhook-verification/
func Plaid(keys Keys) (signing.FactReader, error) {
	return New(Token{
		Name: "plaid", Header: "Plaid-Verification", Algorithm: ES256, Keys: keys, MaxAge: 5 * time.Minute,
		BodyHash: "request_body_sha256", ByToken: true, TypeField: "webhook_code",
	})
}

// Vonage is the scheme of Vonage's signed webhooks, for an account's signature secret.
//
// Source: https://developer.vonage.com/en/getting-started/concepts/webhooks#signed-webhooks
func Vonage() (signing.FactReader, error) {
	return New(Token{
		Name: "vonage", Header: "Authorization", Prefix: "Bearer ", Algorithm: HS256, MaxAge: 5 * time.Minute, Issuers: []string{"Vonage"},
		BodyHash: "payload_hash", TimeField: "timestamp",
	})
}

// MessageBird is the scheme of the signed webhooks of MessageBird, whose new name is Bird.
// url is where it sends, letter by letter as it is registered there.
//
// Source: https://developers.messagebird.com/api/#verifying-http-requests
func MessageBird(url string) (signing.FactReader, error) {
	return New(Token{
		Name: "messagebird", Header: "MessageBird-Signature-JWT", Algorithm: HS256, Issuers: []string{"MessageBird"},
		BodyHash: "payload_hash", NoBodyNoHash: true, URLHash: "url_hash", URL: url,
	})
}

// AtlassianConnect is the scheme of the webhooks that an Atlassian Connect app gets from
// one installation. clientKey names the installation, and the keyring has its shared
// secret. basePath is the path of the app's base URL, such as "/jira", or "".
//
// The token covers the method, the path and the query, and not the body, see the package.
//
// Source: https://developer.atlassian.com/cloud/jira/platform/understanding-jwt-for-connect-apps/
func AtlassianConnect(clientKey, basePath string) (signing.FactReader, error) {
	if clientKey == "" {
		return nil, errors.New("jose: AtlassianConnect needs the clientKey of the installation")
	}
	return New(Token{
		Name: "atlassian-connect", Header: "Authorization", Prefix: "JWT ", Algorithm: HS256, Issuers: []string{clientKey},
		QueryHash: "qsh", BasePath: basePath, TypeField: "webhookEvent",
	})
}

// Monday is the scheme of the webhooks that a monday.com app gets, with the app's signing
// secret. url is where monday sends: the token's audience.
//
// The token does not cover the body, see the package.
//
// Source: https://developer.monday.com/apps/docs/integration-authorization
func Monday(url string) (signing.FactReader, error) {
	if url == "" {
		return nil, errors.New("jose: Monday needs the URL to which monday sends: a token for another must not pass")
	}
	return New(Token{
		Name: "monday", Header: "Authorization", Algorithm: HS256, Audience: url,
	})
}
