package guard

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Limits, in bytes: of a URL, and of a host name and its labels (RFC 1035 section
// 2.3.4, without the length bytes).
const (
	maxURL   = 2048
	maxName  = 253
	maxLabel = 63
)

// Error says why a URL is refused. It quotes at most the scheme, the host or the port:
// user info, path and query may hold secrets.
type Error struct {
	Problem string // what is wrong
	Remedy  string // the remedy
}

func (e *Error) Error() string { return "guard: " + e.Problem + ": " + e.Remedy }

func refuse(remedy, problem string, args ...any) error {
	return &Error{Problem: fmt.Sprintf(problem, args...), Remedy: remedy}
}

// CheckURL decides on a callback URL from its text alone, and returns it parsed and
// written anew. Scheme and host are in lower case, the port has no leading zeros, and an
// address is in its usual form. The error is an *Error.
//
// The URL must be absolute, and have at most 2048 printable ASCII characters, without
// spaces and backslashes. Its scheme is https (or http, with AllowPrivateNetworks). It has
// a host, no user info and no fragment, and if it has a port, that is from 1 to 65535. The
// host is an IPv4 address of four decimal numbers, an IPv6 address in brackets without a
// zone, or a name of letters, digits, hyphens and underscores. Its labels neither begin
// nor end with a hyphen. The last one is no number, decimal or hexadecimal, since some
// resolvers read those as addresses. An address must pass CheckAddr. A name must have two
// labels or more and not be under localhost, unless AllowPrivateNetworks is set.
//
// A name that passes may still lead to a forbidden address: Control checks that.
func (p Policy) CheckURL(raw string) (*url.URL, error) {
	if err := checkText(raw); err != nil {
		return nil, err
	}
	const example = "give an absolute URL such as https://example.com/hook"
	u, err := url.Parse(raw)
	var escape url.EscapeError
	switch {
	case errors.As(err, &escape):
		return nil, refuse("write a % that begins none as %25, and none in the host", "it is not a URL: %q is no percent-encoding there", string(escape))
	case err != nil: // url.Parse's error has the whole URL in its text
		return nil, refuse(example, "it is not a URL")
	case u.Scheme == "":
		return nil, refuse(example, "the URL has no scheme")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, refuse("use https", "the scheme is %q", u.Scheme)
	case u.Scheme == "http" && !p.AllowPrivateNetworks:
		return nil, refuse("use https", "the scheme is http")
	case u.Hostname() == "":
		return nil, refuse(example, "the URL has no host")
	case u.User != nil:
		return nil, refuse("leave out what precedes the @; deliveries are signed", "the URL has user info")
	}
	host, err := p.checkHost(u)
	if err != nil {
		return nil, err
	}
	port, err := checkPort(u.Port())
	if err != nil {
		return nil, err
	}
	return rewrite(u, host+port)
}

// rewrite returns the URL made only of the parts that were checked, as a parser reads
// it.
func rewrite(u *url.URL, host string) (*url.URL, error) {
	clean := url.URL{Scheme: u.Scheme, Host: host, Path: u.Path, RawPath: encoded.Replace(u.RawPath), ForceQuery: u.ForceQuery, RawQuery: u.RawQuery}
	text := clean.String()
	again, err := url.Parse(text)
	if err != nil || len(text) > maxURL {
		return nil, refuse("percent-encode all characters that RFC 3986 does not allow as they are", "the URL does not stay the same when it is written anew")
	}
	return again, nil
}

// encoded encodes what a path may not have as it is (RFC 3986 section 3.3), and was let
// through by checkText. Package url would do so from the decoded path, in which %2F is a
// slash like any other.
var encoded = strings.NewReplacer(`"`, "%22", "<", "%3C", ">", "%3E", "^", "%5E", "`", "%60", "{", "%7B", "|", "%7C", "}", "%7D")

func checkText(raw string) error {
	if len(raw) > maxURL {
		return refuse(fmt.Sprintf("at most %d are allowed", maxURL), "the URL has %d bytes", len(raw))
	}
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c >= 0x80:
			return refuse("write an international host name as its A-label (xn--…) and percent-encode the rest", "the URL has a byte that is not ASCII at offset %d", i)
		case c <= ' ' || c == 0x7f || c == '\\':
			return refuse("percent-encode it, or leave it out", "the URL has the character %q at offset %d", c, i)
		case c == '#':
			return refuse("leave out the # and what follows it; it would not be sent", "the URL has a fragment")
		}
	}
	return nil
}

func checkPort(port string) (string, error) {
	if port == "" {
		return "", nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", refuse("ports go from 1 to 65535", "the port is %q", port)
	}
	return ":" + strconv.FormatUint(n, 10), nil
}

func (p Policy) checkHost(u *url.URL) (string, error) {
	host := u.Hostname()
	a, _ := netip.ParseAddr(host) // the zero Addr if it is a name
	if a.Zone() != "" {
		return "", refuse("leave out the % and what follows it", "the address %q has a zone", host)
	}
	if a.Is4() || strings.HasPrefix(u.Host, "[") { // url.Parse leaves only IPv6 addresses in brackets
		return p.checkLiteral(a)
	}
	return p.checkName(strings.ToLower(host))
}

func (p Policy) checkLiteral(a netip.Addr) (string, error) {
	if p.CheckAddr(a) != nil {
		remedy := "give one that is globally routable"
		if p.AllowPrivateNetworks {
			remedy = "give one that is not denied, and no metadata service"
		}
		return "", refuse(remedy, "the address %v may not be called", a)
	}
	if a = a.Unmap(); a.Is4() {
		return a.String(), nil
	}
	return "[" + a.String() + "]", nil
}

func (p Policy) checkName(name string) (string, error) {
	if strings.HasSuffix(name, ".") {
		return "", refuse("leave out the last one", "the host %q ends in a full stop", name)
	}
	if len(name) > maxName {
		return "", refuse(fmt.Sprintf("at most %d are allowed", maxName), "the host has %d bytes", len(name))
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if err := checkLabel(name, label); err != nil {
			return "", err
		}
	}
	if numeric(labels[len(labels)-1]) {
		return "", refuse("write an IPv4 address as four decimal numbers without leading zeros, or give a name", "the host %q ends in a number", name)
	}
	if p.AllowPrivateNetworks {
		return name, nil
	}
	switch {
	case labels[len(labels)-1] == "localhost": // RFC 6761 section 6.3
		return "", refuse("give a public name", "the host %q is this machine", name)
	case len(labels) == 1:
		return "", refuse("give it in full, such as hooks.example.com", "the host %q is a single label", name)
	}
	return name, nil
}

// checkLabel allows labels of RFC 1123 section 2.1, and underscores, which are in use
// and which resolvers accept.
func checkLabel(name, label string) error {
	switch {
	case label == "":
		return refuse("leave out the needless full stop", "the host %q has an empty label", name)
	case len(label) > maxLabel:
		return refuse(fmt.Sprintf("at most %d are allowed", maxLabel), "the host has a label of %d bytes", len(label))
	case label[0] == '-' || label[len(label)-1] == '-':
		return refuse("labels begin and end with letters, digits or underscores", "the host %q has a hyphen at the edge of a label", name)
	}
	for i := 0; i < len(label); i++ {
		c := label[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return refuse("a name has letters, digits, hyphens and underscores, and an international one is written as its A-label (xn--…)", "the host %q has the byte %#x", name, c)
		}
	}
	return nil
}

// numeric tells whether inet_aton, and the URL Standard's host parser
// (https://url.spec.whatwg.org/#ends-in-a-number-checker), take a last label for a
// part of an IPv4 address.
func numeric(label string) bool {
	digits, set := label, "0123456789"
	if rest, ok := strings.CutPrefix(label, "0x"); ok {
		digits, set = rest, "0123456789abcdef"
	}
	return strings.Trim(digits, set) == ""
}
