package portal

import (
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/surehook/surehook/sender"
)

// Grant says for whom a token opens the portal.
type Grant struct {
	// Subscriber is the id of the subscriber whose endpoints and deliveries are shown. It
	// cannot be the Operator: the console is for operators.
	Subscriber string

	// Name is the customer's, shown at the head of the pages. Up to 255 bytes of UTF-8
	// without control characters. Empty: none is shown.
	Name string

	// By is who visits, for the log alone. As Name.
	By string

	// TTL is how long the token opens the portal: a session that was opened in time
	// lasts on. The default is 5 min, the most 1 h.
	TTL time.Duration
}

const (
	defaultTTL = 5 * time.Minute
	maxTTL     = time.Hour
	maxName    = 255
	keySize    = 32
)

// claims are what a token or a session says.
type claims struct {
	Subscriber string `json:"s"`
	Name       string `json:"n,omitempty"`
	By         string `json:"b,omitempty"`
	Until      int64  `json:"u"`           // Unix seconds
	Handle     string `json:"h,omitempty"` // of a session: its part of the path
	Nonce      string `json:"r,omitempty"` // of a session: its forms carry a hash of it
}

func (c *claims) over(now time.Time) bool { return now.Unix() >= c.Until }

// Token returns a token that opens the portal for the subscriber of a grant, any number of
// times until its TTL is over. It is a secret. Hand it to the visitor's browser in the
// body of a POST to "open" below the portal's root, or in the fragment of a URL (see
// Link). Paths and queries stand in logs, so never put it there. It does not ask whether
// there is such a subscriber: of one that is not there, the portal shows nothing.
func (p *Portal) Token(g Grant) (string, error) {
	var errs []error
	if g.TTL == 0 {
		g.TTL = defaultTTL
	}
	if g.Subscriber == "" || g.Subscriber == sender.Operator || len(g.Subscriber) > 128 || !plainText(g.Subscriber) {
		errs = append(errs, fmt.Errorf("sender/portal: Grant.Subscriber is %q: it must be the id of a subscriber, and not the operator's", g.Subscriber))
	}
	for _, text := range []struct{ name, value string }{{"Name", g.Name}, {"By", g.By}} {
		if !plainText(text.value) || len(text.value) > maxName {
			errs = append(errs, fmt.Errorf("sender/portal: Grant.%s is %q: it must be up to %d bytes of UTF-8 without control characters", text.name, text.value, maxName))
		}
	}
	if g.TTL < time.Second || g.TTL > maxTTL {
		errs = append(errs, fmt.Errorf("sender/portal: Grant.TTL is %v: it must be from 1s to %v", g.TTL, maxTTL))
	}
	if err := errors.Join(errs...); err != nil {
		return "", err
	}
	return tokenPrefix + p.seal(forTokens, &claims{Subscriber: g.Subscriber, Name: g.Name, By: g.By, Until: p.cfg.Now().Add(g.TTL).Unix()}), nil
}

// Link returns a URL that opens the portal for the subscriber of a grant. It can be the
// target of a link, or the src of a frame. root is where browsers find the portal, and
// ends in a slash: https://hooks.example.com/portal/. The token stands in the fragment,
// which browsers send to nobody; the portal's script takes it from there, so that this way
// needs a browser with scripts.
func (p *Portal) Link(root string, g Grant) (string, error) {
	u, err := url.Parse(root)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || !strings.HasSuffix(u.Path, "/") || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("sender/portal: Link: root is %q: it must be the http or https URL of the portal, with a slash at its end", root)
	}
	token, err := p.Token(g)
	if err != nil {
		return "", err
	}
	return root + "#" + token, nil
}

// tokenPrefix lets secret scanners find tokens.
const tokenPrefix = "shport_"

// purpose keeps what is signed for one end from serving another one.
type purpose int

const (
	forTokens purpose = iota
	forSessions
	forForms
	forHandles
	purposes
)

// derived are the keys of all purposes, from one key.
type derived [purposes][]byte

func derive(key []byte) (d derived, err error) {
	if len(key) != keySize {
		return d, fmt.Errorf("it has %d bytes: it must be %d random bytes", len(key), keySize)
	}
	for i, info := range [purposes]string{"token", "session", "form", "handle"} {
		if d[i], err = hkdf.Expand(sha256.New, key, "surehook portal: "+info, keySize); err != nil {
			return d, err
		}
	}
	return d, nil
}

func (d *derived) mac(p purpose, text string) []byte {
	h := hmac.New(sha256.New, d[p])
	h.Write([]byte(text))
	return h.Sum(nil)
}

var b64 = base64.RawURLEncoding.Strict()

// seal writes claims and their HMAC with the newest key.
func (p *Portal) seal(end purpose, c *claims) string {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // which would make a cookie of long names too long
	_ = e.Encode(c)        // strings and a number
	body := b64.EncodeToString(text.Bytes())
	return body + "." + b64.EncodeToString(p.keys[0].mac(end, body))
}

// open returns what was sealed with any of the keys for that end, unless its time is over.
func (p *Portal) open(end purpose, sealed string) (*claims, bool) {
	body, text, _ := strings.Cut(sealed, ".")
	mac, err := b64.DecodeString(text)
	if err != nil || len(sealed) > 4096 {
		return nil, false
	}
	for i := range p.keys {
		if !hmac.Equal(mac, p.keys[i].mac(end, body)) {
			continue
		}
		var c claims
		text, err := b64.DecodeString(body)
		if err != nil || json.Unmarshal(text, &c) != nil || c.over(p.cfg.Now()) {
			return nil, false
		}
		return &c, true
	}
	return nil, false
}

// openToken returns the claims of a token.
func (p *Portal) openToken(token string) (*claims, bool) {
	sealed, ok := strings.CutPrefix(strings.TrimSpace(token), tokenPrefix)
	if !ok {
		return nil, false
	}
	return p.open(forTokens, sealed)
}

// plainText tells whether a text can be shown and logged in a line.
func plainText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}
