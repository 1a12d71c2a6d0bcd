package vendors

import (
	"time"

	"github.com/surehook/surehook/signing"
)

const (
	minutes5 = 5 * time.Minute
	// compared is when the entries with evidence were compared.
	compared = "2026-11-26"
)

// bodyOnly is the most frequent scheme: an HMAC-SHA256 of the body in one header.
func bodyOnly(name, header, prefix string, encoding signing.Encoding) signing.Description {
	return signing.Description{Name: name, SignatureHeader: header, SignaturePrefix: prefix, Encoding: encoding, Signed: "{body}"}
}

func with(d signing.Description, change func(*signing.Description)) signing.Description {
	change(&d)
	return d
}

func facts(d signing.Description, id, kind, at string) signing.Description {
	d.IDField, d.TypeField, d.TimeField = id, kind, at
	return d
}

// described are the senders of HMACs that a Description describes.
func described() []Vendor {
	return []Vendor{
		{
			Name: "adyen-platform", Title: "Adyen, platform webhooks", Key: HexDigits,
			Description: facts(with(bodyOnly("adyen-platform", "Hmacsignature", "", signing.Base64), func(d *signing.Description) { d.Key = signing.HexKey }), "", "type", "timestamp"),
			DataField:   "data", Retries: "after 2, 5, 10, 15, 30 min, 1, 2 and 4 h, then every 8 h for 7 days", Success: "2xx within 10 s", Docs: "https://docs.adyen.com/development-resources/webhooks/secure-webhooks/verify-hmac-signatures",
			Evidence: Published, Read: compared, Source: "adyen-dotnet-api-library, test values",
		},
		{
			Name: "airtable", Title: "Airtable", Key: Base64,
			Description: facts(with(bodyOnly("airtable", "X-Airtable-Content-Mac", "hmac-sha256=", signing.Hex), func(d *signing.Description) { d.Key = signing.DecodedKey }), "", "", "timestamp"),
			Retries:     "with backoff, until notifications are disabled", Success: "200 or 204 with an empty body", EmptyAnswer: true,
			Docs: "https://airtable.com/developers/web/api/webhooks-overview",
		},
		{
			Name: "asana", Title: "Asana", Description: bodyOnly("asana", "X-Hook-Signature", "", signing.Hex),
			Retries: "up to 24 h with backoff; then the webhook is deleted", Success: "2xx within 10 s", Challenge: EchoHeader,
			Docs: "https://developers.asana.com/docs/webhooks-guide", Note: "The secret comes with the handshake.",
		},
		{
			Name: "attio", Title: "Attio", Description: bodyOnly("attio", "Attio-Signature", "", signing.Hex),
			Docs: "https://docs.attio.com/rest-api/guides/webhooks", Success: "2xx",
		},
		{
			Name: "authorize-net", Title: "Authorize.net",
			Description: facts(with(bodyOnly("authorize-net", "X-Anet-Signature", "sha512=", signing.HexAnyCase), func(d *signing.Description) { d.Algorithm = signing.HMACSHA512 }), "notificationId", "eventType", "eventDate"),
			DataField:   "payload", ObjectType: "payload.entityName", ObjectID: "payload.id",
			Retries: "10 times over 48 h", Success: "200", Docs: "https://developer.authorize.net/api/reference/features/webhooks.html",
			Evidence: Published, Read: "2026-11-29", Source: "a webhook and its key that a receiver has published in Authorize.net's forum",
			Note: "The key is the text of the Signature Key, and not what its hex digits stand for, as in Authorize.net's other hashes.",
		},
		{
			Name: "bitbucket", Title: "Bitbucket", Description: with(bodyOnly("bitbucket", "X-Hub-Signature", "sha256=", signing.Hex), func(d *signing.Description) {
				d.IDHeader, d.TypeHeader = "X-Request-Uuid", "X-Event-Key"
			}),
			Retries: "twice", Success: "2xx within 10 s", Docs: "https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/",
			Evidence: Published, Read: compared, Source: "the example value of Atlassian's documentation",
		},
		{
			Name: "box", Title: "Box",
			Description: signing.Description{
				Name: "box", SignatureHeader: "Box-Signature-Primary", MoreSignatureHeaders: []string{"Box-Signature-Secondary"}, Encoding: signing.Base64,
				TimestampHeader: "Box-Delivery-Timestamp", TimestampFormat: signing.RFC3339Time, Signed: "{body}{timestamp}", SignWith: signing.EveryKey,
				MaxTolerance: 10 * time.Minute, IDField: "id", IDHeader: "Box-Delivery-Id", TypeField: "trigger", TimeField: "created_at",
			},
			ObjectType: "source.type", ObjectID: "source.id", Window: 10 * time.Minute,
			Retries: "up to 10 times", Success: "2xx within 30 s", Docs: "https://developer.box.com/guides/webhooks/v2/signatures-v2/",
			Evidence: Published, Read: compared, Source: "box-node-sdk and box-python-sdk, test values",
		},
		{
			Name: "buildkite", Title: "Buildkite",
			Description: signing.Description{
				Name: "buildkite", SignatureHeader: "X-Buildkite-Signature", SignatureLabel: "signature", TimestampLabel: "timestamp", Signed: "{timestamp}.{body}",
				IDHeader: "X-Buildkite-Request", TypeField: "event",
			},
			Success: "2xx", Docs: "https://buildkite.com/docs/apis/webhooks",
		},
		{
			Name: "calcom", Title: "Cal.com", Description: facts(bodyOnly("calcom", "X-Cal-Signature-256", "", signing.Hex), "", "triggerEvent", "createdAt"),
			DataField: "payload", ObjectType: "=booking", ObjectID: "payload.uid", Success: "2xx", Docs: "https://cal.com/docs/developing/guides/automation/webhooks",
			Read: compared,
		},
		{
			Name: "calendly", Title: "Calendly",
			Description: signing.Description{
				Name: "calendly", SignatureHeader: "Calendly-Webhook-Signature", SignatureLabel: "v1", TimestampLabel: "t", Signed: "{timestamp}.{body}",
				TypeField: "event", TimeField: "created_at",
			},
			DataField: "payload", ObjectType: "=invitee", ObjectID: "payload.uri", Window: 3 * time.Minute,
			Retries: "up to 24 h with backoff", Success: "2xx within 15 s", Docs: "https://developer.calendly.com/api-docs/4c305798a61d3-webhook-signatures",
			Read: compared,
		},
		{
			Name: "checkout", Title: "Checkout.com", Description: facts(bodyOnly("checkout", "Cko-Signature", "", signing.Hex), "id", "type", "created_on"),
			DataField: "data", ObjectType: "=payment", ObjectID: "data.id", Retries: "8 times", Success: "200", Docs: "https://www.checkout.com/docs/developer-resources/webhooks/manage-webhook-server",
		},
		{
			Name: "circleci", Title: "CircleCI",
			Description: signing.Description{
				Name: "circleci", SignatureHeader: "Circleci-Signature", SignatureLabel: "v1", Signed: "{body}", SignWith: signing.EveryKey,
				IDField: "id", TypeField: "type", TypeHeader: "Circleci-Event-Type", TimeField: "happened_at",
			},
			ObjectType: "=workflow", ObjectID: "workflow.id", Success: "2xx within 5 s", Docs: "https://circleci.com/docs/outbound-webhooks/",
			Evidence: Published, Read: compared, Source: "the table of example values in CircleCI's documentation",
		},
		{
			Name: "cloudflare-stream", Title: "Cloudflare Stream",
			Description: signing.Description{Name: "cloudflare-stream", SignatureHeader: "Webhook-Signature", SignatureLabel: "sig1", TimestampLabel: "time", Signed: "{timestamp}.{body}", TypeField: "status.state"},
			ObjectType:  "=video", ObjectID: "uid", Success: "2xx", Docs: "https://developers.cloudflare.com/stream/manage-video-library/using-webhooks/",
		},
		{
			Name: "coinbase-commerce", Title: "Coinbase Commerce", Description: facts(bodyOnly("coinbase-commerce", "X-Cc-Webhook-Signature", "", signing.Hex), "event.id", "event.type", "event.created_at"),
			DataField: "event.data", ObjectType: "=charge", ObjectID: "event.data.id", Retries: "up to 3 days with backoff", Success: "2xx", Docs: "https://docs.cdp.coinbase.com/commerce/docs/webhooks-security",
			Evidence: Published, Read: compared, Source: "coinbase-commerce-node, test values",
		},
		{
			Name: "contentful", Title: "Contentful",
			Description: signing.Description{
				Name: "contentful", SignatureHeader: "X-Contentful-Signature", TimestampHeader: "X-Contentful-Timestamp", TimestampFormat: signing.UnixMillis,
				Signed: "{method}\n{path}\ncontent-type:{header:Content-Type};x-contentful-signed-headers:{header:X-Contentful-Signed-Headers};" +
					"x-contentful-timestamp:{timestamp};x-contentful-topic:{header:X-Contentful-Topic}\n{body}",
				TypeHeader: "X-Contentful-Topic",
			},
			Body: OwnJSON, Media: "application/vnd.contentful.management.v1+json", ObjectType: "sys.type", ObjectID: "sys.id", Version: "sys.revision", Window: 30 * time.Second,
			Retries: "twice, 30 s apart, on 429 and 5xx", Success: "2xx within 30 s", Docs: "https://www.contentful.com/developers/docs/webhooks/request-verification/",
			Evidence: Published, Read: compared, Source: "a value of @contentful/node-apps-toolkit, whose version 3.16 makes it, too",
			Note: "The headers that a webhook signs are those that it is configured with: this entry has content-type and x-contentful-topic. Contentful escapes the query of the URL before it signs it: give it a URL without one.",
		},
		{
			Name: "convoy", Title: "Convoy", Description: signing.ConvoyAdvanced().Description(), Key: Text,
			Retries: "as the project is configured", Success: "2xx", Docs: "https://docs.getconvoy.io/product-manual/signatures",
			Evidence: Published, Read: compared, Source: "pkg/signature/testdata of frain-dev/convoy",
		},
		{
			Name: "convoy-simple", Title: "Convoy, simple signatures", Description: signing.ConvoySimple().Description(),
			Retries: "as the project is configured", Success: "2xx", Docs: "https://docs.getconvoy.io/product-manual/signatures",
			Evidence: Published, Read: compared, Source: "pkg/signature/testdata of frain-dev/convoy",
		},
		{
			Name: "customerio", Title: "Customer.io",
			Description: signing.Description{
				Name: "customerio", SignatureHeader: "X-Cio-Signature", TimestampHeader: "X-Cio-Timestamp", Signed: "v0:{timestamp}:{body}",
				IDField: "event_id", TypeField: "metric", TimeField: "timestamp",
			},
			DataField: "data", ObjectType: "object_type", ObjectID: "data.customer_id", Retries: "with backoff", Success: "2xx within 4 s", Docs: "https://docs.customer.io/journeys/webhooks/",
		},
		{
			Name: "discourse", Title: "Discourse", Description: with(bodyOnly("discourse", "X-Discourse-Event-Signature", "sha256=", signing.Hex), func(d *signing.Description) {
				d.IDHeader, d.TypeHeader = "X-Discourse-Event-Id", "X-Discourse-Event"
			}),
			Success: "2xx", Docs: "https://meta.discourse.org/t/configure-webhooks-that-trigger-on-discourse-events-to-integrate-with-external-services/49045",
			Evidence: Published, Read: compared, Source: "discourse/discourse, test values",
		},
		{
			Name: "docusign", Title: "DocuSign Connect",
			Description: signing.Description{
				Name: "docusign", SignatureHeader: "X-Docusign-Signature-1", Encoding: signing.Base64, Signed: "{body}", SignWith: signing.EveryKey,
				MoreSignatureHeaders: []string{"X-Docusign-Signature-2", "X-Docusign-Signature-3", "X-Docusign-Signature-4", "X-Docusign-Signature-5", "X-Docusign-Signature-6", "X-Docusign-Signature-7", "X-Docusign-Signature-8", "X-Docusign-Signature-9", "X-Docusign-Signature-10"},
				TypeField:            "event", TimeField: "generatedDateTime",
			},
			DataField: "data", ObjectType: "=envelope", ObjectID: "data.envelopeId", Retries: "up to 15 days", Success: "200 within 100 s", Docs: "https://developers.docusign.com/platform/webhooks/connect/validate/",
			Evidence: Library, Read: compared, Source: "a value of DocuSign's code examples, which were run for it",
		},
		{
			Name: "dropbox", Title: "Dropbox", Description: bodyOnly("dropbox", "X-Dropbox-Signature", "", signing.Hex),
			Retries: "for ten minutes with backoff", Success: "2xx within 10 s", Challenge: EchoQuery, Docs: "https://www.dropbox.com/developers/reference/webhooks",
			Note: "Events are thin: they name accounts. All those of an account have the same bytes, and a receiver takes one alone: take them into a queue, by Receiver.RecordHandler.",
			Read: compared,
		},
		{
			Name: "dwolla", Title: "Dwolla", Description: facts(with(bodyOnly("dwolla", "X-Request-Signature-Sha-256", "", signing.Hex), func(d *signing.Description) { d.TypeHeader = "X-Dwolla-Topic" }), "id", "topic", "timestamp"),
			Body: OwnJSON, Media: "application/vnd.dwolla.v1.hal+json", ObjectType: "=resource", ObjectID: "resourceId", Retries: "8 times over 72 h", Success: "2xx within 10 s", Docs: "https://developers.dwolla.com/docs/webhook-events",
		},
		{
			Name: "elevenlabs", Title: "ElevenLabs",
			Description: signing.Description{
				Name: "elevenlabs", SignatureHeader: "Elevenlabs-Signature", SignatureLabel: "v0", TimestampLabel: "t", Signed: "{timestamp}.{body}",
				TypeField: "type", TimeField: "event_timestamp",
			},
			DataField: "data", Window: 30 * time.Minute, Success: "200", Docs: "https://elevenlabs.io/docs/overview/administration/webhooks",
			Evidence: Library, Read: compared, Source: "@elevenlabs/elevenlabs-js (npm) verifies it",
		},
		{
			Name: "frameio", Title: "Frame.io",
			Description: signing.Description{
				Name: "frameio", SignatureHeader: "X-Frameio-Signature", SignaturePrefix: "v0=", TimestampHeader: "X-Frameio-Request-Timestamp", Signed: "v0:{timestamp}:{body}", TypeField: "type",
			},
			ObjectType: "resource.type", ObjectID: "resource.id", Window: minutes5, Retries: "5 times with backoff", Success: "2xx within 5 s", Docs: "https://developer.adobe.com/frameio/guides/Webhooks/",
			Note: "Events are thin. All those of one type and resource have the same bytes, and a receiver takes one alone: take them into a queue, by Receiver.RecordHandler.",
		},
		{
			Name: "ghost", Title: "Ghost",
			Description: signing.Description{
				Name: "ghost", SignatureHeader: "X-Ghost-Signature", SignatureLabel: "sha256", TimestampLabel: "t", TimestampFormat: signing.UnixMillis, SpacedList: true, Signed: "{body}{timestamp}",
			},
			Retries: "5 times", Success: "2xx within 2 s", Docs: "https://docs.ghost.org/webhooks",
			Evidence: Library, Read: compared, Source: "a value of WebhookTrigger in TryGhost/Ghost, which was run for it",
		},
		{
			Name: "gitea", Title: "Gitea, Forgejo", Description: with(bodyOnly("gitea", "X-Gitea-Signature", "", signing.Hex), func(d *signing.Description) {
				d.IDHeader, d.TypeHeader = "X-Gitea-Delivery", "X-Gitea-Event"
			}),
			Success: "2xx", Docs: "https://docs.gitea.com/usage/webhooks",
			Read: compared, Note: "Choose application/json: of a form, only the field payload is signed.",
		},
		{
			Name: "github", Title: "GitHub", Description: signing.GitHub().Description(), Retries: "none; redeliver by hand or by its API, for 3 days", Success: "2xx within 10 s",
			Docs: "https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries", Note: "Choose application/json: a form is answered with 415. A body has up to 25 MB: set receiver.Config.MaxBodyBytes.",
			Evidence: Published, Read: compared, Source: "the example value of GitHub's documentation; go-github",
		},
		{
			Name: "gocardless", Title: "GoCardless", Description: bodyOnly("gocardless", "Webhook-Signature", "", signing.Hex),
			Retries: "up to 8 times with backoff", Success: "2xx within 10 s", Docs: "https://developer.gocardless.com/getting-started/staying-up-to-date-with-webhooks/",
			Evidence: Published, Read: compared, Source: "gocardless-nodejs, gocardless-pro-python and -ruby, test values",
			Note: "A request has a list of events.",
		},
		{
			Name: "greenhouse", Title: "Greenhouse", Description: facts(bodyOnly("greenhouse", "Signature", "sha256 ", signing.Hex), "", "action", ""),
			DataField: "payload", Retries: "7 times over 15 h", Success: "2xx", Docs: "https://developers.greenhouse.io/webhooks.html",
		},
		{
			Name: "heroku", Title: "Heroku", Description: facts(bodyOnly("heroku", "Heroku-Webhook-Hmac-Sha256", "", signing.Base64), "id", "action", "created_at"),
			DataField: "data", ObjectType: "resource", ObjectID: "data.id", Retries: "10 times over 72 h, if the level is sync", Success: "2xx", Docs: "https://devcenter.heroku.com/articles/app-webhooks",
		},
		{
			Name: "hook0", Title: "Hook0", Description: signing.Hook0().Description(), Window: minutes5, Success: "2xx",
			Docs:     "https://documentation.hook0.com/tutorials/webhook-authentication",
			Evidence: Published, Read: compared, Source: "clients/conformance of hook0/hook0",
		},
		{
			Name: "hookdeck", Title: "Hookdeck",
			Description: signing.Description{
				Name: "hookdeck", SignatureHeader: "X-Hookdeck-Signature", MoreSignatureHeaders: []string{"X-Hookdeck-Signature-2"}, Encoding: signing.Base64, Signed: "{body}",
				SignWith: signing.EveryKey, IDHeader: "X-Hookdeck-Eventid",
			},
			Retries: "as the connection is configured", Success: "2xx", Docs: "https://hookdeck.com/docs/authentication",
			Evidence: Library, Read: compared, Source: "@hookdeck/sdk (npm) verifies it",
		},
		{
			Name: "hubspot", Title: "HubSpot, v3",
			Description: signing.Description{
				Name: "hubspot", SignatureHeader: "X-Hubspot-Signature-V3", Encoding: signing.Base64, TimestampHeader: "X-Hubspot-Request-Timestamp", TimestampFormat: signing.UnixMillis,
				Signed: "{method}{url}{body}{timestamp}", MaxTolerance: minutes5,
			},
			Window: minutes5, Retries: "up to 10 times over 24 h", Success: "2xx within 5 s", Docs: "https://developers.hubspot.com/docs/apps/developer-platform/build-apps/authentication/request-validation",
			Evidence: Published, Read: compared, Source: "hubspot-api-python, test values",
			Note: "A request has a list of events. Give the URL with the escapes undone that HubSpot's page lists.",
		},
		{
			Name: "intercom", Title: "Intercom", Description: facts(with(bodyOnly("intercom", "X-Hub-Signature", "sha1=", signing.Hex), func(d *signing.Description) { d.Algorithm = signing.HMACSHA1 }), "id", "topic", "created_at"),
			DataField: "data.item", ObjectType: "data.item.type", ObjectID: "data.item.id", Retries: "once, after a minute", Success: "2xx within 5 s", Docs: "https://developers.intercom.com/docs/webhooks/setting-up-webhooks",
		},
		{
			Name: "jira", Title: "Jira Cloud", Description: facts(bodyOnly("jira", "X-Hub-Signature", "sha256=", signing.Hex), "", "webhookEvent", "timestamp"),
			ObjectType: "=issue", ObjectID: "issue.id", Retries: "up to 5 times, on 408, 409, 425, 429 and 5xx", Success: "2xx within 30 s", Docs: "https://developer.atlassian.com/cloud/jira/platform/webhooks/",
			Evidence: Published, Read: compared, Source: "the example value of Atlassian's documentation",
		},
		{
			Name: "launchdarkly", Title: "LaunchDarkly", Description: facts(bodyOnly("launchdarkly", "X-Ld-Signature", "", signing.Hex), "_id", "kind", "date"),
			Retries: "once", Success: "2xx", Docs: "https://launchdarkly.com/docs/integrations/webhooks",
		},
		{
			Name: "lemonsqueezy", Title: "Lemon Squeezy", Description: with(facts(bodyOnly("lemonsqueezy", "X-Signature", "", signing.Hex), "", "meta.event_name", ""), func(d *signing.Description) { d.TypeHeader = "X-Event-Name" }),
			DataField: "data", ObjectType: "data.type", ObjectID: "data.id", Retries: "3 times: after 5, 25 and 125 s", Success: "200", Docs: "https://docs.lemonsqueezy.com/help/webhooks/signing-requests",
			Read: compared,
		},
		{
			Name: "line", Title: "LINE", Description: bodyOnly("line", "X-Line-Signature", "", signing.Base64),
			Retries: "if redelivery is on", Success: "200", Docs: "https://developers.line.biz/en/reference/messaging-api/#signature-validation",
			Evidence: Published, Read: compared, Source: "line-bot-sdk-nodejs, test values",
			Note: "A request has a list of events.",
		},
		{
			Name: "linear", Title: "Linear", Description: signing.Linear().Description(), DataField: "data", ObjectType: "type", ObjectID: "data.id", Window: time.Minute,
			Retries: "3 times: after a minute, an hour and 6 h", Success: "200 within 5 s", Docs: "https://linear.app/developers/webhooks",
			Evidence: Library, Read: compared, Source: "@linear/sdk (npm) verifies it",
		},
		{
			Name: "lob", Title: "Lob",
			Description: signing.Description{
				Name: "lob", SignatureHeader: "Lob-Signature", TimestampHeader: "Lob-Signature-Timestamp", TimestampFormat: signing.UnixMillis, Signed: "{timestamp}.{body}",
				IDField: "id", TypeField: "event_type.id", TimeField: "date_created",
			},
			DataField: "body", ObjectType: "event_type.resource", ObjectID: "reference_id", Window: minutes5, Success: "2xx", Docs: "https://docs.lob.com/#tag/Webhooks",
		},
		{
			Name: "mailgun", Title: "Mailgun",
			Description: signing.Description{
				Name: "mailgun", SignatureField: "signature.signature", TimestampField: "signature.timestamp", Signed: "{timestamp}{field:signature.token}",
				IDField: "signature.token", TypeField: "event-data.event", TimeField: "signature.timestamp",
			},
			DataField: "event-data", Retries: "over 8 h: after 10, 10, 15, 30 min, 1, 2 and 4 h", Success: "200; 406 stops it", Docs: "https://documentation.mailgun.com/docs/mailgun/user-manual/tracking-messages/#securing-webhooks",
			Evidence: Library, Read: compared, Source: "mailgun-go verifies it",
			Note: "The signature covers a time and a token, and not the event: fetch what it says.",
		},
		{
			Name: "meta", Title: "Meta: Facebook, Instagram, WhatsApp", Description: signing.Meta().Description(), Challenge: HubChallenge,
			Retries: "for 36 h, ever less often", Success: "200", Docs: "https://developers.facebook.com/docs/graph-api/webhooks/getting-started",
			Evidence: Library, Read: compared, Source: "go-github, which signs alike; not Meta's own",
		},
		{
			Name: "mercadopago", Title: "Mercado Pago",
			Description: signing.Description{
				Name: "mercadopago", SignatureHeader: "X-Signature", SignatureLabel: "v1", TimestampLabel: "ts", TimestampFormat: signing.UnixSecondsOrMillis,
				Signed: "id:{lower:data.id};request-id:{header:X-Request-Id};ts:{timestamp};", IDField: "data.id", TypeField: "type",
			},
			DataField: "data", Retries: "after 15 min, 30 min, 6 h, 48 h and 96 h", Success: "200 or 201 within 22 s", Docs: "https://www.mercadopago.com.br/developers/en/docs/your-integrations/notifications/webhooks",
			Evidence: Library, Read: compared, Source: "mercadopago (npm) verifies it, but for the lower case, which its documentation asks for",
			Note: "The signature covers the id of what changed, and not the body: fetch it. The URL has the id, too, which is taken from the body here. A repetition has another x-request-id, and is another event.",
		},
		{
			Name: "mux", Title: "Mux",
			Description: signing.Description{
				Name: "mux", SignatureHeader: "Mux-Signature", SignatureLabel: "v1", TimestampLabel: "t", Signed: "{timestamp}.{body}",
				IDField: "id", TypeField: "type", TimeField: "created_at",
			},
			DataField: "data", ObjectType: "object.type", ObjectID: "object.id", Window: minutes5, Retries: "up to 24 h", Success: "2xx within 5 s", Docs: "https://www.mux.com/docs/core/verify-webhook-signatures",
			Evidence: Published, Read: compared, Source: "mux-node-sdk and mux-ruby, test values",
		},
		{
			Name: "notion", Title: "Notion", Description: facts(bodyOnly("notion", "X-Notion-Signature", "sha256=", signing.Hex), "id", "type", "timestamp"),
			DataField: "data", ObjectType: "entity.type", ObjectID: "entity.id", Retries: "8 times over 24 h", Success: "200", Challenge: OwnURL, Docs: "https://developers.notion.com/reference/webhooks",
			Evidence: Library, Read: compared, Source: "@notionhq/client (npm) signs and verifies it",
			Note: "It first posts a verification_token without a signature, which you enter on its page.",
		},
		{
			Name: "nylas", Title: "Nylas", Description: facts(bodyOnly("nylas", "X-Nylas-Signature", "", signing.Hex), "id", "type", "time"),
			DataField: "data.object", ObjectType: "data.object.object", ObjectID: "data.object.id", Retries: "3 times", Success: "200 within 10 s", Challenge: EchoQuery, Docs: "https://developer.nylas.com/docs/v3/notifications/",
			Evidence: Library, Read: compared, Source: "a value of nylas/cli, which was run for it and verifies it",
		},
		{
			Name: "onfido", Title: "Onfido", Description: facts(bodyOnly("onfido", "X-Sha2-Signature", "", signing.Hex), "", "payload.action", "payload.object.completed_at_iso8601"),
			DataField: "payload", ObjectType: "payload.resource_type", ObjectID: "payload.object.id", Retries: "5 times", Success: "2xx", Docs: "https://documentation.onfido.com/api/latest/#webhooks",
			Evidence: Library, Read: compared, Source: "@onfido/api (npm) verifies it",
		},
		{
			Name: "paddle", Title: "Paddle Billing", Description: signing.Paddle().Description(), DataField: "data", ObjectType: "=entity", ObjectID: "data.id",
			Retries: "60 times over 3 days", Success: "2xx within 5 s", Docs: "https://developer.paddle.com/webhooks/signature-verification",
			Evidence: Published, Read: compared, Source: "paddle-go-sdk, test values",
		},
		{
			Name: "pagerduty", Title: "PagerDuty, v3",
			Description: signing.Description{
				Name: "pagerduty", SignatureHeader: "X-Pagerduty-Signature", SignatureLabel: "v1", Signed: "{body}", SignWith: signing.EveryKey,
				IDField: "event.id", TypeField: "event.event_type", TimeField: "event.occurred_at",
			},
			DataField: "event.data", ObjectType: "event.data.type", ObjectID: "event.data.id", Retries: "up to 48 h", Success: "2xx within 5 s", Docs: "https://developer.pagerduty.com/docs/verifying-webhook-signatures",
			Evidence: Published, Read: compared, Source: "go-pagerduty's webhookv3, test values",
		},
		{
			Name: "paystack", Title: "Paystack", Description: facts(with(bodyOnly("paystack", "X-Paystack-Signature", "", signing.Hex), func(d *signing.Description) { d.Algorithm = signing.HMACSHA512 }), "", "event", ""),
			DataField: "data", ObjectType: "=data", ObjectID: "data.id", Retries: "every 3 min 4 times, then hourly for 72 h", Success: "200", Docs: "https://paystack.com/docs/payments/webhooks/",
		},
		{
			Name: "persona", Title: "Persona",
			Description: signing.Description{
				Name: "persona", SignatureHeader: "Persona-Signature", SignatureLabel: "v1", TimestampLabel: "t", List: signing.GroupedList, SignWith: signing.EveryKey, Signed: "{timestamp}.{body}",
				IDField: "data.id", TypeField: "data.attributes.name", TimeField: "data.attributes.created-at",
			},
			DataField: "data.attributes.payload.data", ObjectType: "data.attributes.payload.data.type", ObjectID: "data.attributes.payload.data.id",
			Retries: "7 times with backoff", Success: "2xx within 5 s", Docs: "https://docs.withpersona.com/webhooks-best-practices",
		},
		{
			Name: "pusher", Title: "Pusher Channels", Description: facts(bodyOnly("pusher", "X-Pusher-Signature", "", signing.Hex), "", "", "time_ms"),
			Retries: "for 5 min with backoff", Success: "2xx", Docs: "https://pusher.com/docs/channels/server_api/webhooks/",
			Evidence: Library, Read: compared, Source: "pusher (npm) verifies it",
			Note: "A request has a list of events.",
		},
		{
			Name: "razorpay", Title: "Razorpay", Description: with(facts(bodyOnly("razorpay", "X-Razorpay-Signature", "", signing.Hex), "", "event", "created_at"), func(d *signing.Description) { d.IDHeader = "X-Razorpay-Event-Id" }),
			DataField: "payload", Retries: "up to 24 h with backoff", Success: "2xx within 5 s", Docs: "https://razorpay.com/docs/webhooks/validate-test/",
			Evidence: Library, Read: compared, Source: "razorpay (npm) and razorpay-go verify it",
		},
		{
			Name: "recharge", Title: "Recharge",
			Description: signing.Description{
				Name: "recharge", SignatureHeader: "X-Recharge-Webhook-Signature", SignatureLabel: "v1", TimestampLabel: "t", Signed: "{timestamp}.{body}", TypeHeader: "X-Recharge-Topic",
			},
			Window: 48 * time.Hour, Success: "200 within 5 s", Docs: "https://docs.getrecharge.com/docs/webhooks-overview",
		},
		{
			Name: "recurly", Title: "Recurly",
			Description: signing.Description{
				Name: "recurly", SignatureHeader: "Recurly-Signature", List: signing.TimeThenSignatures, SignatureLabel: "signature", TimestampLabel: "timestamp",
				TimestampFormat: signing.UnixMillis, Signed: "{timestamp}.{body}", SignWith: signing.EveryKey, TypeField: "event_type", TimeField: "event_time",
			},
			ObjectType: "object_type", ObjectID: "id", Window: minutes5, Success: "2xx", Docs: "https://docs.recurly.com/recurly-subscriptions/docs/signature-verification",
			Evidence: Published, Read: compared, Source: "recurly-client-ruby, test values",
			Note: "Notifications in XML are not signed.",
		},
		{
			Name: "sanity", Title: "Sanity",
			Description: signing.Description{
				Name: "sanity", SignatureHeader: "Sanity-Webhook-Signature", SignatureLabel: "v1", Encoding: signing.Base64URL, TimestampLabel: "t", TimestampFormat: signing.UnixMillis,
				Signed: "{timestamp}.{body}",
			},
			ObjectType: "_type", ObjectID: "_id", Retries: "with backoff, for 30 min, except on 4xx", Success: "2xx within 30 s", Docs: "https://www.sanity.io/docs/content-lake/webhook-best-practices",
			Evidence: Published, Read: compared, Source: "@sanity/webhook, test values",
			Note: "The body is what you have configured: its paths are those of the default.",
		},
		{
			Name: "segment", Title: "Segment", Description: facts(with(bodyOnly("segment", "X-Signature", "", signing.Hex), func(d *signing.Description) { d.Algorithm = signing.HMACSHA1 }), "messageId", "type", "timestamp"),
			ObjectType: "=user", ObjectID: "userId", Retries: "for 4 h", Success: "2xx within 5 s", Docs: "https://segment.com/docs/connections/destinations/catalog/webhooks/",
		},
		{
			Name: "sentry", Title: "Sentry", Description: with(facts(bodyOnly("sentry", "Sentry-Hook-Signature", "", signing.Hex), "", "action", ""), func(d *signing.Description) {
				d.IDHeader, d.TypeHeader = "Request-Id", "Sentry-Hook-Resource"
			}),
			DataField: "data", Success: "2xx within 1 s", Docs: "https://docs.sentry.io/organization/integrations/integration-platform/webhooks/",
			Read: compared,
		},
		{
			Name: "shopify", Title: "Shopify", Description: signing.Shopify().Description(), Retries: "8 times over 4 h", Success: "200 within 5 s",
			Docs:     "https://shopify.dev/docs/apps/build/webhooks/subscribe/https",
			Evidence: Published, Read: compared, Source: "shopify-api-js, test values",
		},
		{
			Name: "sinch", Title: "Sinch Conversation",
			Description: signing.Description{
				Name: "sinch", SignatureHeader: "X-Sinch-Webhook-Signature", Encoding: signing.Base64, TimestampHeader: "X-Sinch-Webhook-Signature-Timestamp",
				Signed: "{body}.{header:X-Sinch-Webhook-Signature-Nonce}.{timestamp}", TimeField: "accepted_time",
			},
			Success: "2xx", Docs: "https://developers.sinch.com/docs/conversation/callbacks",
			Evidence: Published, Read: compared, Source: "the example of Sinch's documentation; sinch-sdk-node, -java and -dotnet, test values",
		},
		{
			Name: "slack", Title: "Slack", Description: signing.Slack().Description(), Body: JSONOrForm, DataField: "event", Window: minutes5, Challenge: SlackJSON, EmptyAnswer: true,
			Retries: "3 times: at once, after a minute and 5 min", Success: "2xx within 3 s", Docs: "https://docs.slack.dev/authentication/verifying-requests-from-slack",
			Evidence: Published, Read: compared, Source: "the example value of Slack's documentation; slack-go",
		},
		{
			Name: "square", Title: "Square", Description: unURL(signing.NewSquare("https://example.com/")), DataField: "data.object", ObjectType: "data.type", ObjectID: "data.id",
			Retries: "11 times over 24 h", Success: "2xx within 10 s", Docs: "https://developer.squareup.com/docs/webhooks/step3validate",
			Evidence: Published, Read: compared, Source: "square-nodejs-sdk, test values",
		},
		{
			Name: "stripe", Title: "Stripe", Description: signing.Stripe().Description(), DataField: "data.object", ObjectType: "data.object.object", ObjectID: "data.object.id", Window: minutes5,
			Retries: "up to 3 days with backoff", Success: "2xx", Docs: "https://docs.stripe.com/webhooks#verify-manually",
			Evidence: Library, Read: compared, Source: "stripe-go and stripe (npm), in both directions",
		},
		{
			Name: "tally", Title: "Tally", Description: facts(bodyOnly("tally", "Tally-Signature", "", signing.Base64), "eventId", "eventType", "createdAt"),
			DataField: "data", ObjectType: "=response", ObjectID: "data.responseId", Retries: "5 times over 30 h", Success: "2xx within 10 s", Docs: "https://tally.so/help/webhooks",
		},
		{
			Name: "teams-outgoing", Title: "Microsoft Teams outgoing webhooks", Key: Base64,
			Description: facts(with(bodyOnly("teams-outgoing", "Authorization", "HMAC ", signing.Base64), func(d *signing.Description) { d.Key = signing.DecodedKey }), "id", "type", "timestamp"),
			Retries:     "none", Success: "200 within 5 s, with a message", Docs: "https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/add-outgoing-webhook",
		},
		{
			Name: "terraform", Title: "HCP Terraform notifications", Description: facts(with(bodyOnly("terraform", "X-Tfe-Notification-Signature", "", signing.Hex), func(d *signing.Description) { d.Algorithm = signing.HMACSHA512 }), "", "", ""),
			ObjectType: "=run", ObjectID: "run_id", Success: "2xx", Docs: "https://developer.hashicorp.com/terraform/cloud-docs/api-docs/notification-configurations",
		},
		{
			Name: "todoist", Title: "Todoist", Description: with(facts(bodyOnly("todoist", "X-Todoist-Hmac-Sha256", "", signing.Base64), "", "event_name", ""), func(d *signing.Description) { d.IDHeader = "X-Todoist-Delivery-Id" }),
			DataField: "event_data", ObjectType: "=entity", ObjectID: "event_data.id", Retries: "3 times, 15 min apart", Success: "200", Docs: "https://developer.todoist.com/api/v1/#tag/Webhooks",
			Evidence: Library, Read: compared, Source: "@doist/todoist-sdk (npm) verifies it",
		},
		{
			Name: "trello", Title: "Trello",
			Description: signing.Description{
				Name: "trello", SignatureHeader: "X-Trello-Webhook", Algorithm: signing.HMACSHA1, Encoding: signing.Base64, Signed: "{body}{url}",
				IDField: "action.id", TypeField: "action.type", TimeField: "action.date",
			},
			DataField: "action.data", ObjectType: "=model", ObjectID: "model.id", Retries: "3 times: after 30, 60 and 120 s", Success: "200", Docs: "https://developer.atlassian.com/cloud/trello/guides/rest-api/webhooks/",
			Challenge: HEAD,
		},
		{
			Name: "twitch", Title: "Twitch EventSub",
			Description: signing.Description{
				Name: "twitch", SignatureHeader: "Twitch-Eventsub-Message-Signature", SignaturePrefix: "sha256=", IDHeader: "Twitch-Eventsub-Message-Id",
				TimestampHeader: "Twitch-Eventsub-Message-Timestamp", TimestampFormat: signing.RFC3339Time, Signed: "{id}{timestamp}{body}",
				MaxTolerance: 10 * time.Minute, TypeHeader: "Twitch-Eventsub-Message-Type", TypeField: "subscription.type",
			},
			DataField: "event", Window: 10 * time.Minute, Success: "2xx within seconds", Docs: "https://dev.twitch.tv/docs/eventsub/handling-webhook-events/",
			Challenge: TwitchText, Note: "A revocation is an event, too.",
			Evidence: Library, Read: compared, Source: "values of twitch-cli, which was run for it, and which takes the answer to its challenge",
		},
		{
			Name: "typeform", Title: "Typeform", Description: facts(bodyOnly("typeform", "Typeform-Signature", "sha256=", signing.Base64), "event_id", "event_type", "form_response.submitted_at"),
			DataField: "form_response", ObjectType: "=response", ObjectID: "form_response.token", Retries: "for 10 h on timeouts and 5xx", Success: "2xx within 30 s", Docs: "https://www.typeform.com/developers/webhooks/secure-your-webhooks/",
			Read: compared,
		},
		{
			Name: "vercel", Title: "Vercel", Description: facts(with(bodyOnly("vercel", "X-Vercel-Signature", "", signing.Hex), func(d *signing.Description) { d.Algorithm = signing.HMACSHA1 }), "id", "type", "createdAt"),
			DataField: "payload", Retries: "up to 24 h with backoff", Success: "2xx within 30 s", Docs: "https://vercel.com/docs/webhooks/webhooks-api",
		},
		{
			Name: "veriff", Title: "Veriff", Description: bodyOnly("veriff", "X-Hmac-Signature", "", signing.HexAnyCase),
			ObjectType: "=verification", ObjectID: "verification.id", Retries: "once an hour for 7 days", Success: "200 within 5 s", Docs: "https://devdocs.veriff.com/docs/hmac-authentication-and-endpoint-security",
			Evidence: Published, Read: compared, Source: "an example value of Veriff's documentation, as others quote it",
		},
		{
			Name: "webflow", Title: "Webflow",
			Description: signing.Description{
				Name: "webflow", SignatureHeader: "X-Webflow-Signature", TimestampHeader: "X-Webflow-Timestamp", TimestampFormat: signing.UnixMillis, Signed: "{timestamp}:{body}", TypeField: "triggerType",
			},
			DataField: "payload", ObjectType: "=item", ObjectID: "payload.id", Window: minutes5, Retries: "3 times, 10 min apart", Success: "200", Docs: "https://developers.webflow.com/data/docs/working-with-webhooks",
			Evidence: Library, Read: compared, Source: "webflow-api (npm) verifies it",
		},
		{
			Name: "woocommerce", Title: "WooCommerce", Description: with(bodyOnly("woocommerce", "X-Wc-Webhook-Signature", "", signing.Base64), func(d *signing.Description) {
				d.IDHeader, d.TypeHeader = "X-Wc-Webhook-Delivery-Id", "X-Wc-Webhook-Topic"
			}),
			ObjectType: "=resource", ObjectID: "id", Retries: "none; disabled after 5 failures", Success: "2xx, 301 or 302", Docs: "https://woocommerce.com/document/webhooks/",
			Read: compared, Note: "When a webhook is made, it posts a form with webhook_id that nobody has signed, and wants 200: answer that by a route of your own.",
		},
		{
			Name: "workos", Title: "WorkOS",
			Description: signing.Description{
				Name: "workos", SignatureHeader: "Workos-Signature", SignatureLabel: "v1", TimestampLabel: "t", TimestampFormat: signing.UnixMillis, SpacedList: true,
				Signed: "{timestamp}.{body}", IDField: "id", TypeField: "event", TimeField: "created_at",
			},
			DataField: "data", ObjectType: "data.object", ObjectID: "data.id", Window: 3 * time.Minute, Retries: "6 times over 3 days", Success: "200", Docs: "https://workos.com/docs/events/data-syncing/webhooks",
			Evidence: Library, Read: compared, Source: "@workos-inc/node (npm) verifies it",
		},
		{
			Name: "worldpay", Title: "Access Worldpay",
			Description: signing.Description{
				Name: "worldpay", SignatureHeader: "Event-Signature", List: signing.KeyedSignatures, SignatureLabel: "SHA256", Signed: "{body}", SignWith: signing.EveryKey,
				IDField: "eventId", TypeField: "eventDetails.type", TimeField: "eventTimestamp",
			},
			DataField: "eventDetails", Success: "200", Docs: "https://docs.worldpay.com/access/products/events/signature",
			Read: compared,
		},
		{
			Name: "x", Title: "X (Twitter)", Description: bodyOnly("x", "X-Twitter-Webhooks-Signature", "sha256=", signing.Base64),
			Success: "200 within 10 s", Challenge: CRC, Docs: "https://docs.x.com/x-api/webhooks/introduction",
			Evidence: Library, Read: compared, Source: "twitter-autohook (npm) verifies it, and answers the question alike",
		},
		{
			Name: "xero", Title: "Xero", Description: bodyOnly("xero", "X-Xero-Signature", "", signing.Base64),
			Retries: "for 24 h, ever less often", Success: "200 within 5 s, with an empty body", EmptyAnswer: true, Docs: "https://developer.xero.com/documentation/guides/webhooks/overview/",
			Note: "It checks a URL by requests with right and wrong signatures, and wants 401 for the latter. A request has a list of events.",
		},
		{
			Name: "zendesk", Title: "Zendesk", Description: signing.Zendesk().Description(), ObjectType: "=subject", ObjectID: "detail.id",
			Retries: "3 times on 409, 429 and 503, 5 times on timeouts", Success: "2xx within 12 s", Docs: "https://developer.zendesk.com/documentation/webhooks/verifying/",
			Note: "The example value of an older page is one for the body before the time.",
		},
		{
			Name: "zoom", Title: "Zoom",
			Description: signing.Description{
				Name: "zoom", SignatureHeader: "X-Zm-Signature", SignaturePrefix: "v0=", TimestampHeader: "X-Zm-Request-Timestamp", Signed: "v0:{timestamp}:{body}",
				TypeField: "event", TimeField: "event_ts",
			},
			DataField: "payload.object", ObjectType: "=object", ObjectID: "payload.object.id", Retries: "3 times: after 5, 20 and 60 min", Success: "200 or 204 within 3 s", Challenge: ZoomJSON,
			Docs:     "https://developers.zoom.us/docs/api/webhooks/",
			Evidence: Library, Read: compared, Source: "@zoom/rivet (npm) verifies it",
		},
	}
}

// unURL takes the URL out again, which each receiver gives for itself.
func unURL(s *signing.Described, err error) signing.Description {
	if err != nil {
		return signing.Description{}
	}
	d := s.Description()
	d.URL = ""
	return d
}
