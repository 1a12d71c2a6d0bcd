package signing

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Description says how a sender signs. [NewDescribed] makes a [Scheme] of it, as this
// package does for the schemes of other senders. Only Name, SignatureHeader and Signed
// are always needed. The zero value of every other field is a valid choice.
type Description struct {
	// Name is the scheme's name in [Verified] and in logs.
	Name string

	// SignatureHeader carries the signature. Without a SignatureLabel its value is
	// SignaturePrefix and the encoded signature, and nothing else. Prefix and labels are
	// visible ASCII characters, the prefix with spaces between them or at its end.
	SignatureHeader string
	SignaturePrefix string

	// SignatureLabel makes the header a list of "label=value" joined by Separator (a
	// comma by default). Each value under this label is a signature, and one of them must
	// match, so that a sender can rotate its secret. There may be 16 of them at most, and
	// 32 pairs in all. Pairs with other labels are ignored.
	SignatureLabel string
	Separator      byte

	// List is for lists that are no pairs of "label=value" joined by one Separator.
	List ListForm

	// SpacedList lets spaces stand behind a Separator, as in "t=1, v1=2".
	SpacedList bool

	// MoreSignatureHeaders are further headers that may have a signature of the same form,
	// made with another key. At least one of all must be there, each of them at most once,
	// and one of the signatures must match. With SignatureRepeats the headers may be there
	// repeatedly. There may be 16 signatures at most. Both exclude a SignatureLabel.
	MoreSignatureHeaders []string
	SignatureRepeats     bool

	// SignatureField is where the signature stands in a JSON body, instead of
	// SignatureHeader: a path of names with full stops between them. Such a body cannot
	// sign itself, so Signed has fields of it, and nothing else of the body is signed.
	// Nothing can be checked before the body is read, and only one scheme of a verifier,
	// its last, can have its signature there. Sign does not make such signatures.
	SignatureField string

	Algorithm Algorithm
	Encoding  Encoding
	Key       KeyForm

	// Signed is a template of the text that is signed, such as "{timestamp}.{body}". It
	// has texts and these parts, each at most once:
	//
	//	{body}                 the body, byte for byte
	//	{digest:sha256:hex}    the body's digest, also sha512 and base64
	//	{timestamp}            the time of signing, as it is written
	//	{id}                   the value of IDHeader
	//	{url}, {path}          URL below; its path and query
	//	{method}               POST: no other method verifies
	//	{header:X-Name}        a header's value
	//	{field:data.id}        a text or a plain number of a JSON body
	//	{lower:data.id}        the same in lower case; its facts are Unsigned
	//	{form:token}           the one value of a form's parameter
	//	{headers}              see HeadersLabel; it stands before {body}
	//
	// A text that has neither {body} nor a digest does not cover the body: a verifier asks
	// for VerifierConfig.UnsignedBody.
	//
	// The text must not be splittable into its parts in two ways. So a text must stand
	// between the body and the value of a header or a field. The value has at most 1024
	// visible ASCII characters and spaces, and the text's byte beside it is not among them.
	//
	// Put a separator behind {id} that no id of the sender has, such as a full stop or a
	// colon. An id may then have 1 to 256 visible ASCII characters, except the separator.
	// With a letter, a digit, "-" or "_" behind it, or another part, it has 1 to 128
	// letters, digits, hyphens and underscores. Otherwise the text could be split in two
	// ways. Behind {body} the separator stands before {id}.
	Signed string

	// URL is the value of {url} and {path}: the URL that the sender was given, letter by
	// letter. A request's own URL is not used, because proxies change it.
	URL string

	// HeadersLabel is a label in the signature's header. Under it the sender names further
	// headers that it has signed, in lower case and joined by spaces. {headers} stands for
	// these names, followed by a full stop and the value of each. So none of them, and not
	// IDHeader either, can have a full stop.
	HeadersLabel string

	// At most one of these says where the time of signing is: in a header of its own, under a
	// label in the signature's header, or in a field of the JSON body. A field is read only
	// after the signature was found to be right, unless Signed has {timestamp}, which is then
	// the field's text. With none of them, the signature covers no time, and the scheme's
	// [ReplayDefence] is [DedupAlone].
	TimestampHeader string
	TimestampLabel  string
	TimestampField  string
	TimestampFormat TimestampFormat

	// MaxTolerance bounds a verifier's tolerance, for senders that ask for a smaller one.
	MaxTolerance time.Duration

	// SignWith says which of a keyring's keys sign while a secret is rotated.
	SignWith SignWith

	// These say where the [Facts] are. A field is the path to a value in a JSON body,
	// with full stops between names. A header is a fact if the signature covers it, and
	// Unsigned otherwise.
	IDField    string
	IDHeader   string
	TypeField  string
	TypeHeader string
	TimeField  string
}

// Algorithm computes a signature.
type Algorithm uint8

// The algorithms. The zero value is HMAC-SHA256. HMAC-SHA1 is for senders that offer
// nothing better: no known attack on SHA-1 touches HMAC (RFC 6194 section 3.3). Under
// GODEBUG=fips140=only it is refused.
const (
	HMACSHA256 Algorithm = iota
	HMACSHA512
	HMACSHA1
	PlainSHA256 // no HMAC: SHA-256 of the secret and the text; for [NewPlainHash] alone
	Ed25519
	ECDSAP256       // of the text's SHA-256, in ASN.1 (RFC 3279 section 2.2.3) and base64
	RSASHA256       // RSASSA-PKCS1-v1_5 of the text's SHA-256 (RFC 8017 section 8.2); not in a Description
	RSAPSSSHA512    // RSASSA-PSS of the text's SHA-512, with a salt of any length (RFC 8017 section 8.1); not in a Description
	keyedAlgorithms = Ed25519
)

// size is how many bytes a signature has. Those of RSA have no size of their own.
func (a Algorithm) size() int { return [...]int{32, 64, 20, 32, 64, 64}[a] }

// public algorithms have one key for signing and another one for verifying.
func (a Algorithm) public() bool { return a == Ed25519 || a == ECDSAP256 }

// Encoding is how the bytes of a signature are written.
type Encoding uint8

// The encodings, each in its one strict form or in two. The zero value is Hex.
const (
	Hex            Encoding = iota // lowercase digits
	Base64                         // standard alphabet with padding (RFC 4648 section 4)
	HexAnyCase                     // digits of either case
	Base64Unpadded                 // standard alphabet, with padding or without
	Base64URL                      // URL alphabet, with padding or without (RFC 4648 section 5)
)

// KeyForm is how the key is made of the secret.
type KeyForm uint8

// The forms of keys. The zero value is TextKey. None matters to Ed25519 and ECDSA. HexKey
// and Base64URLKey need 16 bytes at least.
const (
	TextKey      KeyForm = iota // the bytes of the secret's text as it is shown
	DecodedKey                  // what its base64 stands for, behind whsec_ if it has that
	HexKey                      // what its hex digits, of either case, stand for
	Base64URLKey                // what its base64url stands for, with padding or without
)

// TimestampFormat is how a time is written.
type TimestampFormat uint8

// The formats of times. The zero value is UnixSeconds.
const (
	UnixSeconds         TimestampFormat = iota // 1 to 11 digits, no sign, no leading zero
	UnixMillis                                 // 1 to 14 digits likewise
	RFC3339Time                                // as in RFC 3339, in any zone
	UnixSecondsOrMillis                        // one of the first two: up to 11 digits are seconds
)

// ListForm is the form of a list of signatures.
type ListForm uint8

// The forms of lists. The zero value is LabelledList.
const (
	LabelledList ListForm = iota // label=value, and so on
	// TimeThenSignatures is a time and then signatures, without labels:
	// "1659641851000,a8c8…,cafe…". SignatureLabel and TimestampLabel are then set to any two
	// names, which are not written.
	TimeThenSignatures
	// KeyedSignatures are signatures with the id of a key before the label, as in
	// "1/SHA256/a8c8…,2/SHA256/cafe…". Every key of the keyring is tried: the id chooses none.
	KeyedSignatures
	// GroupedList has groups of pairs with a space between them, which must state one time:
	// "t=1,v1=a8c8… t=1,v1=cafe…".
	GroupedList
)

// SignWith says with which of the keys that are valid a sender signs.
type SignWith uint8

// NewestKey is the zero value. EveryKey puts one signature of each into the header, newest
// first, and last those of keys whose NotBefore has not come, which takes a SignatureLabel.
const (
	NewestKey SignWith = iota
	OldestKey
	EveryKey
)

// check returns all problems of the description.
func (d *Description) check() error {
	var problems []error
	wrong := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("signing: description of "+fmt.Sprintf("%q", d.Name)+": "+format, args...))
	}
	if d.Name == "" {
		wrong("it needs a Name")
	}
	switch {
	case d.SignatureHeader == "" && d.SignatureField == "":
		wrong("it needs a SignatureHeader, or a SignatureField if the signature is in the body")
	case d.SignatureHeader != "" && d.SignatureField != "":
		wrong("SignatureHeader and SignatureField exclude each other: a signature is in one place")
	}
	seen := map[string]string{}
	names := []struct{ field, name string }{
		{"SignatureHeader", d.SignatureHeader}, {"TimestampHeader", d.TimestampHeader}, {"IDHeader", d.IDHeader}, {"TypeHeader", d.TypeHeader},
	}
	if len(d.MoreSignatureHeaders) >= maxSignatures {
		wrong("MoreSignatureHeaders has %d names: it may have %d", len(d.MoreSignatureHeaders), maxSignatures-1)
	}
	for i, name := range d.MoreSignatureHeaders {
		if name == "" {
			wrong("MoreSignatureHeaders has an empty name")
		}
		names = append(names, struct{ field, name string }{fmt.Sprintf("MoreSignatureHeaders[%d]", i), name})
	}
	for _, h := range names {
		if h.name == "" {
			continue
		}
		if strings.ContainsFunc(h.name, func(r rune) bool { return !isTokenRune(r) }) {
			wrong("%s is %q: that cannot be the name of a header", h.field, h.name)
		}
		if other, twice := seen[http.CanonicalHeaderKey(h.name)]; twice {
			wrong("%s and %s are the same header, %q", other, h.field, h.name)
		}
		seen[http.CanonicalHeaderKey(h.name)] = h.field
	}
	if err := d.Algorithm.allowed(); err != nil {
		wrong("%w", err)
	}
	if d.Algorithm == RSASHA256 || d.Algorithm == RSAPSSSHA512 {
		wrong("RSA is for schemes of other packages, such as httpsig: a Description has the algorithms up to ECDSAP256")
	}
	if d.Algorithm > RSAPSSSHA512 || d.Encoding > Base64URL || d.Key > Base64URLKey || d.TimestampFormat > UnixSecondsOrMillis || d.SignWith > EveryKey || d.List > GroupedList {
		wrong("its Algorithm, Encoding, Key, TimestampFormat, SignWith and List must be constants of this package")
	}
	if strings.HasPrefix(d.SignaturePrefix, " ") || strings.ContainsFunc(d.SignaturePrefix, func(r rune) bool { return r != ' ' && !visible(r) }) {
		wrong("SignaturePrefix is %q: a header's value begins with a visible ASCII character, and has such and spaces alone", d.SignaturePrefix)
	}
	d.checkLabels(wrong)
	d.checkPlace(wrong)
	d.checkTime(wrong)
	d.checkSigned(wrong)
	return errors.Join(problems...)
}

func (d *Description) checkLabels(wrong func(string, ...any)) {
	if d.SignatureLabel == "" {
		if d.TimestampLabel != "" || d.HeadersLabel != "" || d.Separator != 0 || d.SpacedList || d.List != LabelledList {
			wrong("TimestampLabel, HeadersLabel, Separator, SpacedList and List need a SignatureLabel")
		}
		if d.SignWith == EveryKey && d.MoreSignatureHeaders == nil && !d.SignatureRepeats {
			wrong("EveryKey needs a SignatureLabel, MoreSignatureHeaders or SignatureRepeats: without one there is one signature")
		}
		return
	}
	if d.MoreSignatureHeaders != nil || d.SignatureRepeats {
		wrong("SignatureLabel excludes MoreSignatureHeaders and SignatureRepeats: a list has all signatures")
	}
	if d.SignaturePrefix != "" {
		wrong("SignaturePrefix and SignatureLabel exclude each other")
	}
	if d.Algorithm.public() {
		wrong("a signature of Ed25519 or ECDSA cannot have a label: it must stand alone in its header")
	}
	if d.Separator != 0 && d.Separator != ',' && d.Separator != ';' && d.Separator != ' ' {
		wrong("Separator is %q: it must be ',', ';' or ' '", d.Separator)
	}
	switch {
	case d.List != LabelledList && (d.HeadersLabel != "" || d.SpacedList || d.Separator != 0):
		wrong("HeadersLabel, Separator and SpacedList are for a LabelledList alone")
	case d.List == TimeThenSignatures && d.TimestampLabel == "":
		wrong("TimeThenSignatures needs a TimestampLabel, which may be any name")
	case d.List == KeyedSignatures && d.TimestampLabel != "":
		wrong("KeyedSignatures have no time: leave the TimestampLabel out")
	}
	seen := map[string]bool{}
	for _, label := range [...]string{d.SignatureLabel, d.TimestampLabel, d.HeadersLabel} {
		if label == "" {
			continue
		}
		if strings.ContainsFunc(label, func(r rune) bool { return !visible(r) || strings.ContainsRune("=,;", r) }) {
			wrong("the label %q must have visible ASCII characters alone, and no comma, semicolon or equals sign", label)
		}
		if seen[label] {
			wrong("the label %q is used twice", label)
		}
		seen[label] = true
	}
}

// checkPlace holds signatures of public keys, which cost much, and signatures in bodies to
// one each.
func (d *Description) checkPlace(wrong func(string, ...any)) {
	several := d.MoreSignatureHeaders != nil || d.SignatureRepeats
	if d.Algorithm.public() && several {
		wrong("a signature of Ed25519 or ECDSA is the only one: leave MoreSignatureHeaders and SignatureRepeats out")
	}
	if d.Algorithm == ECDSAP256 && d.Encoding != Base64 {
		wrong("the Encoding of ECDSAP256 must be Base64")
	}
	if d.SignatureField == "" {
		return
	}
	if d.SignatureLabel != "" || several {
		wrong("a signature in the body is one text: leave SignatureLabel, MoreSignatureHeaders and SignatureRepeats out")
	}
	if slices.Contains(strings.Split(d.SignatureField, "."), "") {
		wrong("SignatureField is %q: it must be names with full stops between them, such as \"signature.value\"", d.SignatureField)
	}
}

// visible is what every server takes in the value of a header (RFC 9110, section 5.5).
func visible(r rune) bool { return r > ' ' && r <= '~' }

func (d *Description) checkTime(wrong func(string, ...any)) {
	places := 0
	for _, place := range [...]string{d.TimestampHeader, d.TimestampLabel, d.TimestampField} {
		if place != "" {
			places++
		}
	}
	if places > 1 {
		wrong("only one of TimestampHeader, TimestampLabel and TimestampField can be set")
	}
	if d.MaxTolerance != 0 && d.MaxTolerance < time.Second {
		wrong("MaxTolerance is %v: it must be at least 1s", d.MaxTolerance)
	}
}

func (d *Description) checkSigned(wrong func(string, ...any)) {
	parts, err := parseSigned(d.Signed)
	if err != nil {
		wrong("Signed: %w", err)
		return
	}
	has := parts.has
	if stated := d.TimestampHeader != "" || d.TimestampLabel != ""; has(partTimestamp) != stated && (d.TimestampField == "" || stated) {
		// Anyone could set a time that is not a part of the signed text.
		wrong("Signed must have {timestamp} if TimestampHeader or TimestampLabel is set, and cannot have it otherwise, except for a TimestampField")
	}
	if d.TimestampField != "" && !has(partTimestamp) && !parts.covers() && !parts.names(partField, d.TimestampField) {
		wrong("Signed does not cover TimestampField, %q: have {timestamp} in it", d.TimestampField)
	}
	if d.SignatureField != "" && parts.covers() {
		wrong("SignatureField excludes {body} and {digest:…}: a body that has its signature cannot be signed as a whole")
	}
	if has(partID) && d.IDHeader == "" {
		wrong("Signed has {id}: set IDHeader")
	}
	if d.HeadersLabel != "" && d.IDHeader == "" {
		wrong("HeadersLabel needs an IDHeader: that is the header which Sign covers")
	}
	if d.HeadersLabel != "" && strings.Contains(d.IDHeader, ".") {
		wrong("IDHeader is %q: with a HeadersLabel it cannot have a full stop, which separates names from values", d.IDHeader)
	}
	if has(partHeaders) != (d.HeadersLabel != "") {
		wrong("Signed must have {headers} if HeadersLabel is set, and cannot have it otherwise")
	}
	if (has(partURL) || has(partPath)) != (d.URL != "") {
		wrong("Signed must have {url} or {path} if URL is set, and cannot have them otherwise")
	}
	for _, name := range append([]string{d.SignatureHeader, d.TimestampHeader}, d.MoreSignatureHeaders...) {
		if name != "" && parts.names(partHeader, http.CanonicalHeaderKey(name)) {
			wrong("Signed has {header:%s}, which is the header of a signature or of the time: have {timestamp}, or leave it out", name)
		}
	}
	if d.URL != "" {
		if err := checkURL(d.URL); err != nil {
			wrong("URL: %w", err)
		}
	}
}

// checkURL takes what a sender can have been told to send to.
func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.Fragment != "" {
		return errors.New("it must be a whole URL as the sender has it, such as https://example.com/webhooks")
	}
	return nil
}
