// Package jose has schemes for senders whose requests carry a JSON Web Token (RFC 7519):
// Google Pub/Sub, Plaid, Vonage, Bird, Atlassian Connect, monday.com, and others that a
// [Token] describes. It is a module of its own, so that a library of tokens comes only with
// it.
//
//	keys, err := jose.GoogleKeys(nil)
//	scheme, err := jose.PubSub(audience, email, keys)
//	verifier, err := signing.NewVerifier(nil, &signing.VerifierConfig{
//		Schemes: []signing.Scheme{scheme}, Deduplicated: true, UnsignedBody: true,
//	})
//
// # What is pinned
//
// The algorithm is the scheme's. A token's header names it too, and one that names another
// is refused, so that nobody can have a public key taken for a secret. "none" is no algorithm
// here. The kid alone is used of the header: to choose among keys that the [Keys] have. Its
// jku, x5u and jwk are never read, and a crit is refused. Issuer, audience and the other claims
// are those of the Token.
//
// # Tokens that do not cover the body
//
// With a claim that has the body's hash ([Token].BodyHash), a token is a signature of the
// request. Without one, as in Pub/Sub's, it is an identity card: it shows who calls, and TLS
// alone keeps what is said together with it. Somebody who gets hold of such a token, in a
// proxy or a log, can post any body to the same audience until it expires, for Google
// within an hour. So those schemes say [signing.DedupAlone], all their facts are Unsigned,
// and a verifier asks for Deduplicated and UnsignedBody, by which the program says that it
// knows.
//
// # Keys
//
// [JWKS], [GoogleKeys] and [PlaidKeys] fetch public keys: from one URL, over https, without
// redirects or a proxy, at public addresses, bounded in size and time, and not before all
// else of a token is right. They keep them. A token with an unknown kid has them fetched
// anew, at most once in 30 seconds. While keys cannot be had, Verify returns [ErrKeys], which
// is neither a right nor a wrong signature: a receiver answers 503, and the sender sends
// again. With [FixedKeys] nothing is fetched. HS256 goes by the verifier's keyring, whose
// secrets are read with [signing.ParseTextSecret].
package jose
