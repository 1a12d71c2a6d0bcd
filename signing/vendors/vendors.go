// Package vendors has what is known of the webhooks of other senders, as data. It says how
// each of them signs, how its secret is read, where its events state their facts, and what
// it does when it gets no answer.
//
//	stripe, _ := vendors.Find("stripe")
//	scheme, err := stripe.Scheme("")
//	secret, err := stripe.Secret(os.Getenv("STRIPE_WEBHOOK_SECRET"))
//
// Package receiver makes an Envelope of a [Vendor]: receiver.VendorEnvelope.
//
// An entry is as good as its [Evidence]. One that is Unverified says what the vendor's
// documentation says, and nobody has compared it with a value that the vendor has made.
//
// All values here are safe for concurrent use, and are copies: a caller can change them.
package vendors

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/surehook/surehook/signing"
)

// Vendor is what is known of one sender.
type Vendor struct {
	Name  string // in lower case, as in [Find] and on the command line; not always the scheme's
	Title string // as the vendor writes itself

	// Description is how it signs, except where Kind says otherwise. A vendor that signs the
	// URL needs it from you: see NeedsURL. Of one that is Standard or Svix it has the TypeField
	// alone, if the body names the type otherwise than "type".
	Description signing.Description
	Kind        Kind
	Key         Key

	// Body says how its events come.
	Body  BodyForm
	Media string
	// DataField is the path to what changed, in a JSON body. "" is the whole body.
	DataField string
	// ObjectType and ObjectID are the paths to what the event is about, and Version the one
	// to its version. "" is nowhere. An ObjectType that begins with "=" is the type itself.
	ObjectType, ObjectID, Version string

	// TokenSignsBody is true if a JWT covers the body. TokenCovers says in words which
	// other parts of a request it covers; "": no others.
	TokenSignsBody bool
	TokenCovers    string
	// BodyID is the path to the event's id in the body of a sender whose signature does not
	// cover it, and whose repetitions differ elsewhere in the body. It is as good as the body.
	BodyID string

	// Window is how old a request may be, as the vendor says; 0 if it says nothing, or signs
	// no time. It is for VerifierConfig.Tolerance, which is five minutes otherwise: some vendors
	// sign a request once, and then send it again for longer. Schemes of other packages know
	// their own.
	Window time.Duration
	// Retries and Success say what it does without an answer, and which answer it wants. ""
	// is not known.
	Retries, Success string
	Challenge        Challenge
	// EmptyAnswer is true if it reads more than an acknowledgement in an answer's body.
	EmptyAnswer bool

	Docs     string // the vendor's own page
	Read     string // when the page, or the vendor's library, was last compared: 2006-01-02; "" if not since this entry was made
	Evidence Evidence
	Source   string // of the evidence
	Note     string
}

// Kind says what makes the scheme.
type Kind uint8

// The kinds. The zero value is Described.
const (
	Described     Kind = iota // the Description
	Standard                  // Standard Webhooks 1.0.0, with its own headers
	Svix                      // the same with Svix's headers
	Twilio                    // signing.NewTwilio
	SNS                       // package signing/sns: certificates
	UnsignedToken             // signing.NewUnsignedToken of the Description: no signature at all
	Adyen                     // signing.NewAdyen
	Braintree                 // signing.NewBraintree
	JWT                       // package signing/jose: a JSON Web Token
	PlainHash                 // signing.NewPlainHash of the Description: a hash with the secret, and no HMAC
	PayPal                    // package signing/paypal: certificates
)

// Key says how the text of a secret is read.
type Key uint8

// The forms of keys. The zero value is Text.
const (
	Text          Key = iota // the bytes of the text are the key
	Whsec                    // whsec_ and base64, as Standard Webhooks has it, or whpk_
	Base64                   // base64, of at least 24 bytes
	HexDigits                // hex, of at least 16 bytes
	Ed25519Hex               // an Ed25519 public key in hex
	Ed25519Base64            // an Ed25519 public key in base64
	ECDSA                    // an ECDSA public key: PEM, or its base64
	Certificate              // none: the sender's certificate is fetched
	PublicKeys               // none: the sender's public keys are fetched
)

func (k Key) String() string {
	return [...]string{"text", "whsec_ and base64", "base64", "hex", "Ed25519 key, hex", "Ed25519 key, base64", "ECDSA key", "certificate", "public keys"}[k]
}

// BodyForm says what bodies are.
type BodyForm uint8

// The forms of bodies. The zero value is JSON.
const (
	JSON BodyForm = iota
	Form
	JSONOrForm
	PlainJSON // JSON that comes as text/plain
	OwnJSON   // JSON under a media type of the vendor's own: Media
)

// Challenge is a question with which a vendor finds out whether a URL wants its events.
type Challenge uint8

// The challenges. The zero value is NoChallenge.
const (
	NoChallenge     Challenge = iota
	HubChallenge              // GET with hub.mode, hub.verify_token and hub.challenge, which is returned (Meta)
	EchoQuery                 // GET with challenge, which is returned (Dropbox)
	CRC                       // GET with crc_token, of which an HMAC is returned (X)
	EchoHeader                // POST with X-Hook-Secret, which is returned as a header (Asana)
	SlackJSON                 // a signed event with a challenge, which is returned (Slack)
	ZoomJSON                  // a signed event with a plainToken, of which an HMAC is returned (Zoom)
	ValidationToken           // POST with validationToken in the query, which is returned (Microsoft Graph)
	OktaHeader                // GET with X-Okta-Verification-Challenge, which is returned as JSON (Okta)
	TwitchText                // a signed event with a challenge, which is returned as text (Twitch)
	HEAD                      // HEAD, which is answered with 200 (Trello)
	Options                   // OPTIONS with WebHook-Request-Origin (CloudEvents)
	OwnURL                    // the vendor shows or posts a URL or a token that a person or a program of yours opens
)

func (c Challenge) String() string {
	return [...]string{"", "GET hub.challenge", "GET challenge", "GET crc_token", "header X-Hook-Secret", "POST url_verification", "POST endpoint.url_validation", "POST validationToken", "GET x-okta-verification-challenge", "POST webhook_callback_verification", "HEAD", "OPTIONS WebHook-Request-Origin", "yours to confirm"}[c]
}

// Evidence says against what an entry was compared.
type Evidence uint8

// The evidence. The zero value is Unverified.
const (
	Unverified Evidence = iota // documentation alone
	Library                    // the vendor's own library accepts what this package signs, or the other way round
	Published                  // a value that the vendor has published verifies here
)

func (e Evidence) String() string {
	return [...]string{"unverified", "library", "published value"}[e]
}

// All returns every vendor, by name.
func All() []Vendor {
	all := slices.Concat(described(), standard(), public(), weak(), tokens())
	slices.SortFunc(all, func(a, b Vendor) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Find returns the vendor of that name.
func Find(name string) (Vendor, bool) {
	for _, v := range All() {
		if v.Name == name {
			return v, true
		}
	}
	return Vendor{}, false
}

// NeedsURL reports whether the vendor signs the URL to which it sends.
func (v *Vendor) NeedsURL() bool {
	return v.Kind == Twilio || strings.Contains(v.Description.Signed, "{url}") || strings.Contains(v.Description.Signed, "{path}")
}

// SchemeName is the name in signing.Verified.
func (v *Vendor) SchemeName() string {
	switch v.Kind {
	case Standard:
		return signing.StandardWebhooks{}.Name()
	case Svix:
		return signing.Svix().Name()
	case Twilio, SNS, Adyen, Braintree, PayPal:
		return v.Name
	}
	return v.Description.Name
}

// Scheme returns the vendor's scheme. url is where it sends, as it was told, if NeedsURL says
// that it signs it, and must be empty otherwise. The schemes of SNS, PayPal and JWT are made
// by packages signing/sns, signing/paypal and signing/jose. Scheme makes no weak scheme, so
// that whoever takes one has its name in their program: [signing.NewUnsignedToken] makes those
// of the kind UnsignedToken, and [signing.NewPlainHash] those of PlainHash.
func (v *Vendor) Scheme(url string) (signing.Scheme, error) {
	if needs := v.NeedsURL(); needs != (url != "") {
		if needs {
			return nil, fmt.Errorf("vendors: %s signs the URL that it sends to: give it letter by letter, as it is registered there", v.Title)
		}
		return nil, fmt.Errorf("vendors: %s does not sign the URL: give none", v.Title)
	}
	switch v.Kind {
	case Standard:
		return signing.StandardWebhooks{}, nil
	case Svix:
		return signing.Svix(), nil
	case Twilio:
		return signing.NewTwilio(url)
	case Adyen:
		return signing.NewAdyen(), nil
	case Braintree:
		return signing.NewBraintree(), nil
	case UnsignedToken:
		return nil, fmt.Errorf("vendors: %s signs nothing: if you accept a secret that each request shows, make the scheme with signing.NewUnsignedToken(v.Description)", v.Title)
	case PlainHash:
		return nil, fmt.Errorf("vendors: %s makes no HMAC: if you accept a plain hash, make the scheme with signing.NewPlainHash(v.Description), with its URL where NeedsURL says so", v.Title)
	case JWT:
		return nil, fmt.Errorf("vendors: the scheme of %s is made by package signing/jose, a module of its own", v.Title)
	case SNS:
		return nil, errors.New("vendors: the scheme of SNS fetches certificates: make it with sns.New of package signing/sns")
	case PayPal:
		return nil, errors.New("vendors: the scheme of PayPal fetches certificates, and needs your webhook's ID: make it with paypal.New of package signing/paypal")
	}
	d := v.Description
	d.URL = url
	return signing.NewDescribed(d)
}

// Secret reads the text of a secret, or of a public key, as the vendor shows it.
func (v *Vendor) Secret(text string) (signing.Secret, error) {
	switch v.Key {
	case Whsec, Base64:
		return signing.ParseSecret(text)
	case Ed25519Hex:
		return signing.ParseHexPublicKey(text)
	case Ed25519Base64:
		if s, err := signing.ParseHexPublicKey(text); err == nil {
			return s, nil // it is what Reveal has returned
		}
		raw, err := base64.StdEncoding.Strict().DecodeString(text)
		if err != nil {
			return signing.Secret{}, fmt.Errorf("%w: a public key of %s is base64", signing.ErrSecret, v.Title)
		}
		return signing.ParseHexPublicKey(hex.EncodeToString(raw))
	case ECDSA:
		return signing.ParseECDSAPublicKey(text)
	case Certificate, PublicKeys:
		return signing.Secret{}, fmt.Errorf("%w: %s has no secret: its %s are fetched", signing.ErrSecret, v.Title, map[Key]string{Certificate: "certificates", PublicKeys: "public keys"}[v.Key])
	}
	return signing.ParseTextSecret(text)
}

// UnsignedBody reports whether the signature covers only parts of the body, or nothing, so
// that a verifier asks for VerifierConfig.UnsignedBody.
func (v *Vendor) UnsignedBody() bool {
	signed := v.Description.Signed
	if v.Kind == JWT {
		return !v.TokenSignsBody
	}
	return v.Kind == UnsignedToken || v.Kind == Adyen || v.Kind == PayPal || signed != "" && !strings.Contains(signed, "{body}") && !strings.Contains(signed, "{digest:")
}

// SignsTime reports whether the signature covers the time of signing. A token that does not
// cover the body has a time, which is not the request's.
func (v *Vendor) SignsTime() bool {
	if v.Kind == JWT {
		return !v.UnsignedBody()
	}
	d := &v.Description
	return v.Kind == Standard || v.Kind == Svix || v.Kind == SNS || v.Kind == PayPal || cmp.Or(d.TimestampHeader, d.TimestampLabel, d.TimestampField) != ""
}
