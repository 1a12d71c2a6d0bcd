package signing_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
)

const (
	paddleBody = `{"data":{"id":"pri_01hsdn96k2hxjzsq5yerecdj9j","name":null,"status":"active","quantity":{"maximum":999999,"minimum":1},"tax_mode":"account_setting","product_id":"pro_01hsdn8qp7yydry3x1yeg6a9rv","unit_price":{"amount":"1000","currency_code":"USD"},"custom_data":null,"description":"testing","import_meta":null,"trial_period":null,"billing_cycle":{"interval":"month","frequency":1},"unit_price_overrides":[]},"event_id":"evt_01hsdn97563968dy0szkmgjwh3","event_type":"price.created","occurred_at":"2024-03-20T10:07:35.590857Z","notification_id":"ntf_01hsdn977e920kbgzt6r6c9rqc"}`
	slackBody  = `token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c`
	squareBody = `{"merchant_id":"MLEFBHHSJGVHD","type":"webhooks.test_notification","event_id":"ac3ac95b-f97d-458c-a6e6-18981597e05f","created_at":"2022-07-13T20:30:59.037339943Z","data":{"type":"webhooks","id":"bc368e64-01aa-407e-b46e-3231809b1129"}}`
	squareURL  = "https://webhook.site/679a4f3a-dcfa-49ee-bac5-9d0edad886b9"
	convoyBody = `{"event":"charge.success","amount":1000,"currency":"NGN"}`
	hook0V0    = "d17d66b66fca89390c5b967c45e8928fc732db07a0aabe8167b1e98213081ffe"
	hook0V1    = "19a6fb8f6581715b241a93af02a58611c3b0ac7b747a8d2a5b120ee418d0c347"
	hook0V1Rev = "bf5f4e5fe0c9143510ae192f983316a09ed392d0104d2ce0faa3d7bce3687acb"
)

func square(t testing.TB, url string) *signing.Described {
	t.Helper()
	s, err := signing.NewSquare(url)
	require.NoError(t, err)
	return s
}

// convoy is one of Convoy's schemes with what else a project can choose.
func convoy(t *testing.T, s *signing.Described, algorithm signing.Algorithm, encoding signing.Encoding) *signing.Described {
	t.Helper()
	d := s.Description()
	d.Algorithm, d.Encoding = algorithm, encoding
	s, err := signing.NewDescribed(d)
	require.NoError(t, err)
	return s
}

// Values that were published by those who send. Where a value was made to be refused,
// it is for that reason.
func TestPublishedValuesOfOtherSenders(t *testing.T) {
	headers := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return h
	}
	hook0 := func(value string) http.Header {
		return headers("X-Event-Id", "evt-1", "X-Delivery-Id", "dlv-1", "Content-Type", "application/json", "X-Hook0-Signature", value)
	}
	simple, advanced := signing.ConvoySimple(), signing.ConvoyAdvanced()
	for _, c := range []struct {
		what   string
		scheme signing.Scheme
		secret string
		header http.Header
		body   string
		at     int64
		want   error
	}{
		// https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries#testing-the-webhook-payload-validation
		{"github", signing.GitHub(), "It's a Secret to Everybody", headers("X-Hub-Signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"), "Hello, World!", 0, nil},
		// https://docs.slack.dev/authentication/verifying-requests-from-slack
		{"slack", signing.Slack(), "8f742231b10e8888abcd99yyyzzz85a5", headers("X-Slack-Request-Timestamp", "1531420618", "X-Slack-Signature", "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"), slackBody, 1531420618, nil},
		// https://github.com/PaddleHQ/paddle-go-sdk/blob/main/webhook_verifier_test.go
		{"paddle", signing.Paddle(), "pdl_ntfset_01hsdn8d43dt7mezr1ef2jtbaw_hKkRiCGyyRhbFwIUuqiTBgI7gnWoV0Gr", headers("Paddle-Signature", "ts=1710929255;h1=6c05ef8fa83c44d751be6d259ec955ce5638e2c54095bf128e408e2fce1589c8"), paddleBody, 1710929255, nil},
		// https://github.com/Shopify/shopify-api-js/blob/main/packages/apps/shopify-api/lib/webhooks/__tests__/validate.test.ts
		{"shopify", signing.Shopify(), "test_secret_key", headers("X-Shopify-Hmac-Sha256", "B23tXN681gZ0qIWNRrgtzBE9XSDo5yaUu6wfmhu3a7g="), `{"foo": "bar"}`, 0, nil},
		// https://github.com/square/square-nodejs-sdk/blob/master/tests/integration/webhooks.test.ts
		{"square", square(t, squareURL), "Ibxx_5AKakO-3qeNVR61Dw", headers("X-Square-Hmacsha256-Signature", "GF4YkrJgGBDZ9NIYbNXBnMzqb2HoL4RW/S6vkZ9/2N4="), squareBody, 0, nil},
		{"square, no escapes", square(t, "https://webhook.site/webhooks"), "signature-key", headers("X-Square-Hmacsha256-Signature", "W3FlCNk5IA3ZQ2LHTWoajvzfaDu/OwY2tNHIHC3IUOA="), `{"data":{"type":"webhooks","id":"fake_id"}}`, 0, nil},
		{"square, what JSON can escape", square(t, "https://webhook.site/webhooks"), "signature-key", headers("X-Square-Hmacsha256-Signature", "Cxt7+aTi4rKgcA0bC4g9EHdVtLSDWdqccmL5MvihU4U="), `{"data":{"type":"webhooks","id":">id<"}}`, 0, nil},
		{"square, other URL", square(t, "https://webhook.site/79a4f3a-dcfa-49ee-bac5-9d0edad886b9"), "Ibxx_5AKakO-3qeNVR61Dw", headers("X-Square-Hmacsha256-Signature", "GF4YkrJgGBDZ9NIYbNXBnMzqb2HoL4RW/S6vkZ9/2N4="), squareBody, 0, signing.ErrSignatureMismatch},
		{"square, other key", square(t, squareURL), "MCmhFRxGX82xMwg5FsaoQA", headers("X-Square-Hmacsha256-Signature", "GF4YkrJgGBDZ9NIYbNXBnMzqb2HoL4RW/S6vkZ9/2N4="), squareBody, 0, signing.ErrSignatureMismatch},
		{"square, SHA-1", square(t, squareURL), "Ibxx_5AKakO-3qeNVR61Dw", headers("X-Square-Hmacsha256-Signature", "1z2n3DEJJiUPKcPzQo1ftvbxGdw="), squareBody, 0, signing.ErrMalformedHeader},
		{"square, other body", square(t, squareURL), "Ibxx_5AKakO-3qeNVR61Dw", headers("X-Square-Hmacsha256-Signature", "GF4YkrJgGBDZ9NIYbNXBnMzqb2HoL4RW/S6vkZ9/2N4="), strings.Replace(squareBody, "2022-07", "2022-06", 1), 0, signing.ErrSignatureMismatch},
		// https://github.com/hook0/hook0/blob/master/clients/conformance/signature.json
		{"hook0 v0", signing.Hook0Body(), hook0Secret, hook0("t=1800000000,v0=" + hook0V0), hook0Payload, 1800000000, nil},
		{"hook0 v0, edge", signing.Hook0Body(), hook0Secret, hook0("t=1799999700,v0=f9689580483e051113d28de23c1658c509da2b00e7bc15a5aaa83b8bdf83ff81"), hook0Payload, 1800000000, nil},
		{"hook0 v0, old", signing.Hook0Body(), hook0Secret, hook0("t=1799999699,v0=4168cc6c683357e103055b48584715f12e2baa4e679b8e076254247f11edf34d"), hook0Payload, 1800000000, signing.ErrTimestampOutsideWindow},
		{"hook0 v0, ahead", signing.Hook0Body(), hook0Secret, hook0("t=1800000301,v0=ba4b79e449ae52edb505b6baa07380be2baa6e0c4c6fec3b9a01c85d47a4935f"), hook0Payload, 1800000000, signing.ErrTimestampOutsideWindow},
		{"hook0 v0, no hex", signing.Hook0Body(), hook0Secret, hook0("t=1800000000,v0=" + hook0V0[:63] + "z"), hook0Payload, 1800000000, signing.ErrMalformedHeader},
		{"hook0 v0, odd", signing.Hook0Body(), hook0Secret, hook0("t=1800000000,v0=" + hook0V0[:63]), hook0Payload, 1800000000, signing.ErrMalformedHeader},
		{"hook0 v1", signing.Hook0(), hook0Secret, hook0("t=1800000000,h=x-event-id x-delivery-id,v1=" + hook0V1), hook0Payload, 1800000000, nil},
		{"hook0 v1, other order", signing.Hook0(), hook0Secret, hook0("t=1800000000,h=x-delivery-id x-event-id,v1=" + hook0V1Rev), hook0Payload, 1800000000, nil},
		{"hook0 v1, wrong order", signing.Hook0(), hook0Secret, hook0("t=1800000000,h=x-delivery-id x-event-id,v1=" + hook0V1), hook0Payload, 1800000000, signing.ErrSignatureMismatch},
		{"hook0 v1 beside v0", signing.Hook0(), hook0Secret, hook0("t=1800000000,h=x-event-id x-delivery-id,v0=" + hook0V1Rev + ",v1=" + hook0V1), hook0Payload, 1800000000, nil},
		{"hook0 v1 wrong, v0 right", signing.Hook0(), hook0Secret, hook0("t=1800000000,h=x-event-id x-delivery-id,v0=" + hook0V0 + ",v1=" + hook0V1Rev), hook0Payload, 1800000000, signing.ErrSignatureMismatch},
		{"hook0 v1, header missing", signing.Hook0(), hook0Secret, hook0("t=1800000000,h=x-event-id x-missing,v1=" + hook0V1), hook0Payload, 1800000000, signing.ErrMissingHeader},
		// https://github.com/frain-dev/convoy/blob/main/pkg/signature/testdata/signature-vectors.json
		{"convoy simple", simple, convoySecret, headers("X-Convoy-Signature", "244449b7f48cbc2709060c9dcdc2b3aa47a78f540430579015c579fb12defbb4"), convoyBody, 0, nil},
		{"convoy simple, base64", convoy(t, simple, signing.HMACSHA256, signing.Base64), convoySecret, headers("X-Convoy-Signature", "JERJt/SMvCcJBgydzcKzqkenj1QEMFeQFcV5+xLe+7Q="), convoyBody, 0, nil},
		{"convoy simple, SHA-512", convoy(t, simple, signing.HMACSHA512, signing.Hex), convoySecret, headers("X-Convoy-Signature", "6cc772dc81942ae1b5ffa91c3a6a07b0d37edc8dc6bd83e3518a219f1f19ff71ae1b76d6b320940d414c236a1aad7f7930b63e0f1928951955d31219545e1b66"), convoyBody, 0, nil},
		{"convoy simple, SHA-512, base64", convoy(t, simple, signing.HMACSHA512, signing.Base64), convoySecret, headers("X-Convoy-Signature", "bMdy3IGUKuG1/6kcOmoHsNN+3I3GvYPjUYohnx8Z/3GuG3bWsyCUDUFMI2oarX95MLY+DxkolRlV0xIZVF4bZg=="), convoyBody, 0, nil},
		{"convoy simple, altered", simple, convoySecret, headers("X-Convoy-Signature", "244449b7f48cbc2709060c9dcdc2b3aa47a78f540430579015c579fb12defbb0"), convoyBody, 0, signing.ErrSignatureMismatch},
		{"convoy", advanced, convoySecret, headers("X-Convoy-Signature", "t=1700000000,v1=77b8b9269f25a199846a55a2bd25b3fba151c70fdae60bb1dcd87fbbc943c55c"), convoyBody, 1700000000, nil},
		{"convoy, base64", convoy(t, advanced, signing.HMACSHA256, signing.Base64), convoySecret, headers("X-Convoy-Signature", "t=1700000000,v1=d7i5Jp8loZmEalWivSWz+6FRxw/a5gux3Nh/u8lDxVw="), convoyBody, 1700000000, nil},
		{"convoy, SHA-512", convoy(t, advanced, signing.HMACSHA512, signing.Hex), convoySecret, headers("X-Convoy-Signature", "t=1700000000,v1=b2122e252cd2582cf225cb2b8d4ceede9e34329e2fe95c02619c3ed5d4a3d9a73e6beaf2dff8e76d71a693ae198cee40685eed12ad4ee2e033dc2d0399ede057"), convoyBody, 1700000000, nil},
		{"convoy, SHA-512, base64", convoy(t, advanced, signing.HMACSHA512, signing.Base64), convoySecret, headers("X-Convoy-Signature", "t=1700000000,v1=shIuJSzSWCzyJcsrjUzu3p40Mp4v6VwCYZw+1dSj2ac+a+ry3/jnbXGmk64ZjO5AaF7tEq1O4uAz3C0Dme3gVw=="), convoyBody, 1700000000, nil},
		{"convoy, altered", advanced, convoySecret, headers("X-Convoy-Signature", "t=1700000000,v1=77b8b9269f25a199846a55a2bd25b3fba151c70fdae60bb1dcd87fbbc943c550"), convoyBody, 1700000000, signing.ErrSignatureMismatch},
		{"convoy, expired", advanced, convoySecret, headers("X-Convoy-Signature", "t=1700000000,v1=77b8b9269f25a199846a55a2bd25b3fba151c70fdae60bb1dcd87fbbc943c55c"), convoyBody, 1700000301, signing.ErrTimestampOutsideWindow},
		{"convoy, time not first", advanced, convoySecret, headers("X-Convoy-Signature", "v1=77b8b9269f25a199846a55a2bd25b3fba151c70fdae60bb1dcd87fbbc943c55c,t=1700000000"), convoyBody, 1700000000, nil},
		{"convoy, one of two", advanced, convoySecret, headers("X-Convoy-Signature", "t=1700000000,v1=449623e4897bbde05e35358293f97b8c2f697367ffa3e7466e98178dfba44d19,v1=77b8b9269f25a199846a55a2bd25b3fba151c70fdae60bb1dcd87fbbc943c55c"), convoyBody, 1700000000, nil},
		{"convoy, none of two", advanced, convoySecret, headers("X-Convoy-Signature", "t=1700000000,v1=449623e4897bbde05e35358293f97b8c2f697367ffa3e7466e98178dfba44d19,v1=c7eff1833c41a2ce2e195599451b240cd282b1bc9fa387e428a9fd5a5dc74933"), convoyBody, 1700000000, signing.ErrSignatureMismatch},
		{"convoy, infinite", advanced, convoySecret, headers("X-Convoy-Signature", "t=Infinity,v1=77b8b9269f25a199846a55a2bd25b3fba151c70fdae60bb1dcd87fbbc943c55c"), convoyBody, 1700000000, signing.ErrMalformedHeader},
		{"convoy, number", advanced, convoySecret, headers("X-Convoy-Signature", "t=1700000000,v1=1234567890"), convoyBody, 1700000000, signing.ErrMalformedHeader},
		{"convoy, no time", advanced, convoySecret, headers("X-Convoy-Signature", "v1=77b8b9269f25a199846a55a2bd25b3fba151c70fdae60bb1dcd87fbbc943c55c,v2=77b8b9269f25a199846a55a2bd25b3fba151c70fdae60bb1dcd87fbbc943c55c"), convoyBody, 1700000000, signing.ErrMalformedHeader},
	} {
		keys := ring(t, signing.Key{ID: "key", Secret: signing.ShortSecret(c.secret)})
		verified, err := c.scheme.Verify(signing.Message{Header: c.header, Body: []byte(c.body)}, keys, time.Unix(c.at, 0), tolerance)
		if c.want != nil {
			require.ErrorIs(t, err, c.want, c.what)
			continue
		}
		require.NoError(t, err, c.what)
		require.Equal(t, c.scheme.Name(), verified.Scheme, c.what)
		require.NoError(t, c.scheme.Precheck(c.header, time.Unix(c.at, 0), tolerance), c.what)
	}
}

const (
	hook0Secret  = "a-subscription-secret"
	hook0Payload = `{"event":"user.created"}`
	convoySecret = "convoy-webhook-secret"
)

// The values of https://github.com/twilio/twilio-go/blob/main/client/request_validator_test.go
func TestPublishedValuesOfTwilio(t *testing.T) {
	const (
		url       = "https://mycompany.com/myapp.php?foo=1&bar=2"
		target    = "/myapp.php?foo=1&bar=2"
		form      = "Digits=1234&CallSid=CA1234567890ABCDE&To=%2B18005551212&Caller=%2B14158675309&From=%2B14158675309&ReasonConferenceEnded=test&Reason=Participant"
		json      = `{"property": "value", "boolean": true}`
		hash      = "bodySHA256=0a1ff7634d9ab3b95db5c9a2dfe9416e41502b283a80c7cf19632632f96e6620"
		formValue = "vOEb5UThFn24KEfnOFLQY2AE5FY="
	)
	keys := ring(t, signing.Key{ID: "key", Secret: signing.ShortSecret("12345")})
	for _, c := range []struct {
		what, url, target, body, signature string
		want                               error
	}{
		{"form", url, target, form, formValue, nil},
		{"form, another order and escapes", url, target, "Reason=Participant&ReasonConferenceEnded=test&From=%2b14158675309&Caller=%2B14158675309&To=%2B18005551212&CallSid=CA1234567890ABCDE&Digits=%31234", formValue, nil},
		{"form, absolute URL", url, url, form, formValue, nil},
		{"form, no URL", url, "", form, formValue, nil},
		{"form, port here, none there", "https://mycompany.com:1234/myapp.php?foo=1&bar=2", target, form, formValue, nil},
		{"form, http", "http://mycompany.com/myapp.php", target, form, "n2xBNyzSW7rfYStDtOFiFMv7qNo=", nil},
		{"another form", url, target, "property=value&boolean=true", "NBdBDr/T/lgjI+tlgpXjKZQZs/k=", nil},
		{"wrong order", url, target, form, "95+Bu0JVPi0r/SsESZCVf0dWAjw=", signing.ErrSignatureMismatch},
		{"JSON", url, target + "&" + hash, json, "a9nBmqA0ju/hNViExpshrM61xv4=", nil},
		{"JSON, no other parameter", "https://mycompany.com/myapp.php", "/myapp.php?" + hash, json, "y77kIzt2vzLz71DgmJGsen2scGs=", nil},
		{"JSON, other body", "https://mycompany.com/myapp.php", "/myapp.php?" + hash, json + " ", "y77kIzt2vzLz71DgmJGsen2scGs=", signing.ErrSignatureMismatch},
		{"JSON, hash missing", url, target, json, formValue, signing.ErrSignatureMismatch},
		{"not base64", url, target, form, "WRONG SIGNATURE", signing.ErrMalformedHeader},
		{"other path", url, "/other.php?foo=1&bar=2", form, formValue, signing.ErrSignatureMismatch},
		{"other query", url, "/myapp.php?foo=1&bar=3", form, formValue, signing.ErrSignatureMismatch},
		{"a parameter more", url, target, form + "&X=1", formValue, signing.ErrSignatureMismatch},
		{"bad escape", url, target, form + "%2", formValue, signing.ErrSignatureMismatch},
	} {
		scheme, err := signing.NewTwilio(c.url)
		require.NoError(t, err, c.what)
		m := signing.Message{URL: c.target, Header: http.Header{"X-Twilio-Signature": {c.signature}}, Body: []byte(c.body)}
		_, err = scheme.Verify(m, keys, now, tolerance)
		require.ErrorIs(t, err, c.want, c.what)
	}
}
