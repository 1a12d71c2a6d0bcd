// Package signing signs the bytes of an event and verifies them.
//
// A [Secret] is the key material, a [Keyring] holds the secrets that are in use
// with their times, and a [Scheme] says which headers carry the signature and
// which bytes it covers. A sender calls [Sign] once per attempt. A receiver makes
// one [Verifier] and calls [Verifier.Precheck] before it reads the body and
// [Verifier.Verify] afterwards.
//
// # Schemes
//
// [TimestampBody] signs "TIMESTAMP.BODY" with HMAC-SHA256 and sends it as
// lowercase hex. The event's id is not part of what it signs: take the id from
// the verified body, never from the header.
//
// [StandardWebhooks] signs "ID.TIMESTAMP.BODY" as Standard Webhooks 1.0.0 says,
// with HMAC-SHA256 (v1) or Ed25519 (v1a), so that the libraries which follow that
// specification verify it in every language. Its header has a list of signatures, one of
// each secret, so that a receiver verifies all through a rotation, whichever it has.
//
// Our senders sign by both, and a [Verifier] that is given no schemes takes both.
//
// The schemes of other senders are for receiving from them, and for standing in for them
// in tests. Each is made of a [Description]. [NewDescribed] makes a scheme of one's own:
//
//	[Stripe] [Slack] [Paddle] [Zendesk]      sign a time in a header
//	[Discord] [Hook0] [ConvoyAdvanced]       and the body
//	[Svix]                                   is Standard Webhooks with other headers
//	[Linear]                                 signs the body, which has a time
//	[GitHub] [Meta] [Shopify] [ConvoySimple] sign the body and no time
//	[NewSquare] [NewTwilio]                  sign the URL and the body and no time
//	[NewAdyen] [NewBraintree]                have the signature in the body
//
// [NewUnsignedToken] and [NewPlainHash] are for senders that sign nothing, or make no HMAC. A
// verifier takes them only if its configuration says so.
//
// Package httpsig has HTTP Message Signatures (RFC 9421) with Content-Digest, for whoever signs
// by them. Packages sns and paypal have the schemes of Amazon SNS and PayPal, which fetch
// certificates.
//
// With a scheme that signs no time, everything rests on deduplication: its
// [ReplayDefence] is [DedupAlone], and a verifier asks for VerifierConfig.Deduplicated.
// [Verifier.VerifyFacts] returns the key of deduplication, and the facts of the event
// from the signed bytes. A text from a header that no signature covers is [Unsigned].
//
// # Guarantees
//
//   - The verifier's owner chooses the schemes. Nothing in a request can select
//     another one, and a failure in one scheme never falls through to the next.
//   - Every header that a scheme needs is there exactly once and has its exact form.
//     Nothing is trimmed, unfolded or normalised, and the signature covers the
//     header's bytes as they came. Headers that do not come from net/http may be
//     spelled in any case.
//   - The timestamp, where the scheme signs one, lies within the tolerance on both sides,
//     in whole seconds, for every value of either clock. This is decided before any MAC
//     is computed, except where the time is in the body, as Linear's is.
//   - The MAC covers the raw body. Decoded signatures are compared in constant
//     time, with no early exit between the signatures tried against one secret,
//     and one MAC is computed per secret, however many signatures a request holds
//     (two for Twilio).
//   - There is no usable verifier without a key. [ParseSecret] takes none shorter than
//     24 bytes, and [ParseTextSecret], for what others have issued, none under 15.
//   - A Secret redacts itself in every printer and encoder, and no error of this
//     package holds a secret, a MAC, or the value of a header.
//   - Verifying allocates nothing, except for Ed25519 in [StandardWebhooks], for ECDSA, and
//     for a [Description] that signs parts of the body or a digest of it.
//
// All values here are safe for concurrent use.
//
// # Sources
//
//   - Standard Webhooks 1.0.0,
//     https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
//   - RSA: RFC 8017.
//   - HMAC: RFC 2104. HMAC-SHA256 test vectors: RFC 4231.
//   - Ed25519: RFC 8032.
package signing
