package vendors

import "github.com/surehook/surehook/signing"

// weak are the senders that sign nothing, or not as one should. Vendor.Scheme makes none of
// their schemes.
func weak() []Vendor {
	const fetch = "It signs nothing: whoever sees one request has the secret. Fetch what an event says wherever that matters."
	return []Vendor{
		{
			Name: "auth0", Title: "Auth0 log streams", Kind: UnsignedToken,
			Description: signing.Description{Name: "auth0", SignatureHeader: "Authorization"},
			Success:     "2xx", Docs: "https://auth0.com/docs/customize/log-streams/custom-log-streams", Note: fetch + " A request has a list of events.",
		},
		{
			Name: "gitlab-token", Title: "GitLab, with a secret token", Kind: UnsignedToken,
			Description: signing.Description{Name: "gitlab-token", SignatureHeader: "X-Gitlab-Token", IDHeader: "X-Gitlab-Event-Uuid", TypeHeader: "X-Gitlab-Event", TypeField: "object_kind"},
			Success:     "2xx", Docs: "https://docs.gitlab.com/user/project/integrations/webhooks/", Note: fetch + " Set a signing token instead: the entry gitlab.",
		},
		{
			Name: "hubspot-v1", Title: "HubSpot, v1", Kind: PlainHash,
			Description: signing.Description{Name: "hubspot-v1", SignatureHeader: "X-Hubspot-Signature", Algorithm: signing.PlainSHA256, Signed: "{body}"},
			Success:     "2xx within 5 s", Retries: "up to 10 times over 24 h", Docs: "https://developers.hubspot.com/docs/apps/legacy-apps/authentication/validating-requests",
			Evidence: Published, Read: compared, Source: "the example value of HubSpot's documentation", Note: "The same requests have v3's signature: the entry hubspot.",
		},
		{
			Name: "hubspot-v2", Title: "HubSpot, v2", Kind: PlainHash,
			Description: signing.Description{Name: "hubspot-v2", SignatureHeader: "X-Hubspot-Signature", Algorithm: signing.PlainSHA256, Signed: "{method}{url}{body}"},
			Success:     "2xx within 5 s", Docs: "https://developers.hubspot.com/docs/apps/legacy-apps/authentication/validating-requests",
			Evidence: Published, Read: compared, Source: "the example value of HubSpot's documentation", Note: "The same requests have v3's signature: the entry hubspot.",
		},
		{
			Name: "microsoft-graph", Title: "Microsoft Graph", Kind: UnsignedToken,
			Description: signing.Description{Name: "microsoft-graph", SignatureField: "value[].clientState"},
			DataField:   "value", Retries: "up to 4 h with backoff", Success: "2xx within 10 s", Challenge: ValidationToken,
			Docs: "https://learn.microsoft.com/graph/change-notifications-delivery-webhooks", Read: compared, Note: fetch + " A request has a list of events, and the secret is the clientState of each, so that one URL takes the subscriptions of one clientState. All events of a drive have the same bytes, and a receiver takes one alone: take them into a queue, by Receiver.RecordHandler.",
		},
		{
			Name: "okta", Title: "Okta event hooks", Kind: UnsignedToken,
			Description: signing.Description{Name: "okta", SignatureHeader: "Authorization", IDField: "eventId", TypeField: "eventType"},
			DataField:   "data", Success: "2xx within 3 s", Retries: "once", Challenge: OktaHeader, Docs: "https://developer.okta.com/docs/concepts/event-hooks/",
			Note: fetch + " The secret is the header's whole value, as it is entered at Okta. A request has a list of events.",
		},
		{
			Name: "recharge-legacy", Title: "Recharge, without a time", Kind: PlainHash,
			Description: signing.Description{Name: "recharge-legacy", SignatureHeader: "X-Recharge-Hmac-Sha256", Algorithm: signing.PlainSHA256, Signed: "{body}", TypeHeader: "X-Recharge-Topic"},
			Success:     "2xx within 5 s", Docs: "https://docs.getrecharge.com/docs/webhooks-overview", Note: "The header's name says HMAC, and it has none.",
		},
		{
			Name: "telegram", Title: "Telegram bots", Kind: UnsignedToken,
			Description: signing.Description{Name: "telegram", SignatureHeader: "X-Telegram-Bot-Api-Secret-Token", IDField: "update_id"},
			Retries:     "a reasonable number of times", Success: "2xx; a body may be a call of a method", EmptyAnswer: true,
			Docs: "https://core.telegram.org/bots/api#setwebhook", Note: fetch + " Choose a secret_token of 32 random characters: A-Z, a-z, 0-9, _ and - are allowed.",
		},
	}
}
