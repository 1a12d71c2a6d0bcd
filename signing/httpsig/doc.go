// Package httpsig has the scheme of HTTP Message Signatures (RFC 9421), with Content-Digest
// (RFC 9530) for the body.
//
//	scheme, err := httpsig.New(signing.Ed25519, []string{"@method", "@target-uri", "content-digest"},
//		&httpsig.Config{URL: "https://example.com/webhooks", NeedKeyID: true})
//	verifier, err := signing.NewVerifier(keys, &signing.VerifierConfig{Schemes: []signing.Scheme{scheme}})
//
// RFC 9421 lets a request say which algorithm, which key and which parts of it count. Here the
// program says so, and a request can only agree: see [New] and [Config].
//
// # Keys
//
// The keyring has secrets of package signing: an HMAC secret, or a public key from
// signing.ParseHexPublicKey, ParseECDSAPublicKey or ParseRSAPublicKey. A keyid is the ID of one
// of the keyring's keys, and selects it; another keyid is refused. No key is ever fetched.
//
// # Guarantees
//
//   - Each component that [New] was given is covered. A request may cover more, if this package
//     knows how.
//   - The algorithm is that of the key, whatever the request says in alg. If it names another one,
//     it is refused.
//   - Content-Digest is covered as a whole. Each digest in it of SHA-256 and SHA-512 must be that
//     of the raw body, of which one at least must be there. They are compared in constant time.
//   - Signature, Signature-Input and each covered header are there once. RFC 9421 would join lines
//     of the same name, but others who read the request may take one of them. A value with a line
//     end, another control character or a byte beyond ASCII is refused.
//   - A label is there once in each of the two headers, a component once in a signature, and a
//     parameter once.
//   - Structured fields (RFC 9651) are read only in the form in which they are serialised, and
//     within bounds: 8 KiB, 16 signatures, 32 components, 16 parameters.
//   - created lies within Config.MaxAge and the tolerance, in whole seconds, and a signature is
//     refused after its expires.
//   - Verifying with HMAC or Ed25519 allocates nothing, if the components are those of the request
//     before. At 1 KiB, HMAC takes about 1.4 times as long as its two hashes alone.
//
// # Components
//
// These are known: @method, @target-uri, @authority, @scheme, @request-target, @path, @query,
// @query-param with name, and headers, also with bs, or with key, for a header that is a
// dictionary as it is serialised. sf, tr, req and @status are refused, each with its reason. So
// are the headers Signature and Signature-Input.
//
// The parts of the target come from Config.URL, because proxies change what a request says of
// itself. So does the header Host, which net/http takes out of a request.
//
// RSASSA-PSS verifies with a salt of any length, because senders leave it at what their library
// takes. Sign makes one of 64 bytes, as RFC 9421 says.
//
// # Sources
//
//   - HTTP Message Signatures: RFC 9421.
//   - Digest Fields: RFC 9530.
//   - Structured Field Values for HTTP: RFC 9651.
package httpsig
