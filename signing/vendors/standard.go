package vendors

import "github.com/surehook/surehook/signing"

// standard are the senders that follow Standard Webhooks 1.0.0, under its headers or Svix's.
func standard() []Vendor {
	const spec = "the values of the specification's repository and of Svix"
	return []Vendor{
		{Name: "standard-webhooks", Title: "Standard Webhooks", Kind: Standard, Key: Whsec, DataField: "data", Window: minutes5, Success: "2xx", Docs: "https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md", Evidence: Published, Read: compared, Source: spec},
		{Name: "svix", Title: "Svix", Kind: Svix, Key: Whsec, DataField: "data", Window: minutes5, Retries: "8 times over 28 h", Success: "2xx within 15 s", Docs: "https://docs.svix.com/receiving/verifying-payloads/how-manual", Evidence: Published, Read: compared, Source: spec},
		{Name: "clerk", Title: "Clerk", Kind: Svix, Key: Whsec, DataField: "data", ObjectType: "data.object", ObjectID: "data.id", Retries: "as Svix", Success: "2xx within 15 s", Docs: "https://clerk.com/docs/webhooks/overview", Evidence: Library, Read: compared, Source: "@clerk/backend (npm) verifies it"},
		{Name: "resend", Title: "Resend", Kind: Svix, Key: Whsec, DataField: "data", Retries: "as Svix", Success: "2xx", Docs: "https://resend.com/docs/dashboard/webhooks/verify-webhooks-requests", Evidence: Library, Read: compared, Source: "resend (npm) verifies it"},
		{Name: "brex", Title: "Brex", Kind: Standard, Key: Whsec, Description: signing.Description{TypeField: "event_type"}, Retries: "as Svix", Success: "2xx", Docs: "https://developer.brex.com/docs/webhooks/"},
		{Name: "openai", Title: "OpenAI", Kind: Standard, Key: Whsec, DataField: "data", ObjectType: "=data", ObjectID: "data.id", Window: minutes5, Retries: "up to 72 h with backoff", Success: "2xx within seconds", Docs: "https://platform.openai.com/docs/guides/webhooks", Evidence: Library, Read: compared, Source: "openai (npm) verifies it"},
		{Name: "replicate", Title: "Replicate", Kind: Standard, Key: Whsec, ObjectType: "=prediction", ObjectID: "id", Success: "2xx", Docs: "https://replicate.com/docs/topics/webhooks/verify-webhook", Evidence: Library, Read: compared, Source: "replicate (npm) verifies it"},
		{Name: "supabase-auth", Title: "Supabase Auth hooks", Kind: Standard, Key: Whsec, Success: "200", Docs: "https://supabase.com/docs/guides/auth/auth-hooks", Note: "The secret is shown behind \"v1,\": give the part from whsec_ on.", Evidence: Library, Read: compared, Source: "supabase/auth signs with the Go library of Standard Webhooks, which is compared with ours"},
		{Name: "polar", Title: "Polar", Kind: Standard, Key: Whsec, DataField: "data", ObjectType: "=data", ObjectID: "data.id", Retries: "up to 10 times", Success: "2xx within 10 s", Docs: "https://polar.sh/docs/integrate/webhooks/delivery", Note: "Its secret is shown without base64: put whsec_ and the base64 of the text.", Evidence: Library, Read: compared, Source: "@polar-sh/sdk (npm) verifies it"},
		{Name: "gitlab", Title: "GitLab, with a signing token", Kind: Standard, Key: Whsec, Description: signing.Description{TypeField: "object_kind"}, Success: "2xx", Docs: "https://docs.gitlab.com/user/project/integrations/webhooks/", Note: "The older X-Gitlab-Token is no signature, and not taken."},
	}
}
