package signing

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
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

	Algorithm Algorithm
	Encoding  Encoding
	Key       KeyForm

	// Signed is a template of the text that is signed, such as "{timestamp}.{body}". It
	// ends with {body}. Before that it may have {timestamp}, {id} (the value of
	// IDHeader), {url} (URL below) and {headers} (see HeadersLabel).
	//
	// Put a separator behind {id} that no id of the sender has, such as a full stop or a
	// colon. An id may then have 1 to 256 visible ASCII characters, except the separator.
	// With a letter, a digit, "-" or "_" behind it, or another part, it has 1 to 128
	// letters, digits, hyphens and underscores. Otherwise the text could be split in two
	// ways.
	Signed string

	// URL is the value of {url}: the URL that the sender was given, letter by letter. A
	// request's own URL is not used, because proxies change it.
	URL string

	// HeadersLabel is the label in the signature's header under which the sender names
	// further headers that it has signed, in lower case and joined by spaces. {headers}
	// stands for these names, followed by a full stop and the value of each.
	HeadersLabel string

	// At most one of these says where the time of signing is: in a header of its own,
	// under a label in the signature's header, or in a field of the JSON body. A field is
	// read only after the signature was found to be right. With none of them, the
	// signature covers no time, and the scheme's [ReplayDefence] is [DedupAlone].
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
// nothing better: no known attack on SHA-1 touches HMAC (RFC 6194 section 3.3).
const (
	HMACSHA256 Algorithm = iota
	HMACSHA512
	HMACSHA1
	Ed25519
	hmacAlgorithms = Ed25519
)

func (a Algorithm) size() int { return [...]int{32, 64, 20, 64}[a] }

// Encoding is how the bytes of a signature are written.
type Encoding uint8

// The encodings, each in its one strict form. The zero value is Hex.
const (
	Hex    Encoding = iota // lowercase digits
	Base64                 // standard alphabet with padding (RFC 4648 section 4)
)

// KeyForm is how the key is made of the secret.
type KeyForm uint8

// The forms of keys. The zero value is TextKey. Neither matters to Ed25519.
const (
	TextKey    KeyForm = iota // the bytes of the secret's text as it is shown
	DecodedKey                // what its base64 stands for, behind whsec_ if it has that
)

// TimestampFormat is how a time is written.
type TimestampFormat uint8

// The formats of times. The zero value is UnixSeconds.
const (
	UnixSeconds TimestampFormat = iota // 1 to 11 digits, no sign, no leading zero
	UnixMillis                         // 1 to 14 digits likewise
	RFC3339Time                        // as in RFC 3339, in any zone
)

// SignWith says with which of the keys that are valid a sender signs.
type SignWith uint8

// Which keys sign. The zero value is NewestKey. EveryKey puts one signature of each
// into the header, newest first, and last those of keys whose NotBefore has not come,
// which takes a SignatureLabel.
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
	if d.SignatureHeader == "" {
		wrong("it needs a SignatureHeader")
	}
	seen := map[string]string{}
	for _, h := range [...]struct{ field, name string }{
		{"SignatureHeader", d.SignatureHeader}, {"TimestampHeader", d.TimestampHeader}, {"IDHeader", d.IDHeader}, {"TypeHeader", d.TypeHeader},
	} {
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
	if d.Algorithm > Ed25519 || d.Encoding > Base64 || d.Key > DecodedKey || d.TimestampFormat > RFC3339Time || d.SignWith > EveryKey {
		wrong("its Algorithm, Encoding, Key, TimestampFormat and SignWith must be constants of this package")
	}
	if strings.HasPrefix(d.SignaturePrefix, " ") || strings.ContainsFunc(d.SignaturePrefix, func(r rune) bool { return r != ' ' && !visible(r) }) {
		wrong("SignaturePrefix is %q: a header's value begins with a visible ASCII character, and has such and spaces alone", d.SignaturePrefix)
	}
	d.checkLabels(wrong)
	d.checkTime(wrong)
	d.checkSigned(wrong)
	return errors.Join(problems...)
}

func (d *Description) checkLabels(wrong func(string, ...any)) {
	if d.SignatureLabel == "" {
		if d.TimestampLabel != "" || d.HeadersLabel != "" || d.Separator != 0 {
			wrong("TimestampLabel, HeadersLabel and Separator need a SignatureLabel")
		}
		if d.SignWith == EveryKey {
			wrong("EveryKey needs a SignatureLabel: without one the header has one signature")
		}
		return
	}
	if d.SignaturePrefix != "" {
		wrong("SignaturePrefix and SignatureLabel exclude each other")
	}
	if d.Algorithm == Ed25519 {
		wrong("an Ed25519 signature cannot have a label: it must stand alone in its header")
	}
	if d.Separator != 0 && d.Separator != ',' && d.Separator != ';' {
		wrong("Separator is %q: it must be ',' or ';'", d.Separator)
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
	has := func(kind partKind) bool { return hasPart(parts, kind) }
	if stated := d.TimestampHeader != "" || d.TimestampLabel != ""; has(partTimestamp) != stated {
		// Anyone could set a time that is not a part of the signed text.
		wrong("Signed must have {timestamp} if TimestampHeader or TimestampLabel is set, and cannot have it otherwise")
	}
	if has(partID) && d.IDHeader == "" {
		wrong("Signed has {id}: set IDHeader")
	}
	if d.HeadersLabel != "" && d.IDHeader == "" {
		wrong("HeadersLabel needs an IDHeader: that is the header which Sign covers")
	}
	if has(partHeaders) != (d.HeadersLabel != "") {
		wrong("Signed must have {headers} if HeadersLabel is set, and cannot have it otherwise")
	}
	if has(partURL) != (d.URL != "") {
		wrong("Signed must have {url} if URL is set, and cannot have it otherwise")
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
