package httpsig

import (
	"errors"
	"net/url"
	"strings"
)

// target is the URL of a request in its parts (RFC 9421 sections 2.2.2 to 2.2.8).
type target struct {
	whole     string // @target-uri
	scheme    string
	authority string // in lower case, without the scheme's own port
	host      string // as it was given, for a Host header
	reference string // @request-target: path and query
}

// parseTarget reads the URL to which the sender sends. fixed is false if it ends behind the
// host, so that every path is meant.
func parseTarget(text string) (t target, fixed bool, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.Fragment != "" || u.User != nil || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return target{}, false, errors.New("httpsig: Config.URL must be the URL to which the sender sends, such as https://example.com/webhooks, or its beginning, such as https://example.com")
	}
	_, rest, _ := strings.Cut(text, "://")
	i := strings.IndexAny(rest, "/?")
	if i < 0 {
		i = len(rest)
	}
	t = target{whole: text, scheme: u.Scheme, host: rest[:i], authority: strings.ToLower(rest[:i])}
	port := map[string]string{"https": ":443", "http": ":80"}[u.Scheme]
	t.authority = strings.TrimSuffix(t.authority, port)
	t.reference = rest[i:]
	return t, t.reference != "", nil
}

// at returns the target with the path and the query of a request, whose target is in the form
// that net/http has in RequestURI.
func (t *target) at(requestURI string) (target, bool) {
	if strings.ContainsFunc(requestURI, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return target{}, false
	}
	if !strings.HasPrefix(requestURI, "/") {
		_, rest, absolute := strings.Cut(requestURI, "://")
		i := strings.IndexAny(rest, "/?")
		if !absolute || i < 0 {
			return target{}, false
		}
		requestURI = rest[i:]
	}
	here := *t
	here.reference = requestURI
	here.whole = t.scheme + "://" + t.host + requestURI
	return here, true
}

// path returns "/" for an empty one (RFC 9110 section 4.2.3).
func (t *target) path() string {
	p, _, _ := strings.Cut(t.reference, "?")
	if p == "" {
		return "/"
	}
	return p
}

// query returns what stands behind the question mark.
func (t *target) query() string {
	_, q, _ := strings.Cut(t.reference, "?")
	return q
}

// maxQueryPairs bounds what is decoded.
const maxQueryPairs = 256

// param returns the one value of a parameter as it is signed. Both its name and its value are
// written as in a form (RFC 9421 section 2.2.8). It returns false for a parameter that is
// there twice.
func (t *target) param(name string) (value string, ok bool) {
	q := t.query()
	if strings.Count(q, "&") >= maxQueryPairs {
		return "", false
	}
	n := 0
	for pair := range strings.SplitSeq(q, "&") {
		if pair == "" {
			continue
		}
		k, v, _ := strings.Cut(pair, "=")
		if recoded(k) == name {
			value = recoded(v)
			n++
		}
	}
	return value, n == 1
}

// recoded decodes as forms are decoded, where a % without two hex digits is itself, and
// encodes with the set of application/x-www-form-urlencoded, with %20 for a space.
func recoded(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '+' {
			c = ' '
		} else if c == '%' && i+2 < len(text) && unhex(text[i+1]) < 16 && unhex(text[i+2]) < 16 {
			c = unhex(text[i+1])<<4 | unhex(text[i+2])
			i += 2
		}
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || digit(c) || strings.IndexByte("*-._", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		const upper = "0123456789ABCDEF"
		b.Write([]byte{'%', upper[c>>4], upper[c&15]})
	}
	return b.String()
}

func unhex(c byte) byte {
	switch {
	case digit(c):
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}
