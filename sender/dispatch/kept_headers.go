package dispatch

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/surehook/surehook/sender"
)

// MaxHeaders bounds sender.Headers, in bytes.
const MaxHeaders = 5 << 10

const (
	maxSide  = 2 << 10 // of the request's headers, and of the answer's, before it is said how many are left out
	maxValue = 256
	// leastSecret is how many characters a word of a request's secret value needs, so that
	// it is looked for in the answer. Shorter words stand in many values by chance.
	leastSecret = 8

	redacted = "redacted"
	leftOut  = "…"
)

// keptHeaders returns what is kept of the headers of a request and of its answer, which is
// nil if there was none.
func keptHeaders(request, answer http.Header) sender.Headers {
	secrets := secretsOf(request)
	b := appendHeaders(make([]byte, 0, 1<<10), request, func(name, value string) string {
		if shownOfRequest[name] {
			return value
		}
		return redacted
	})
	b = append(b, '\n')
	b = appendHeaders(b, answer, func(name, value string) string {
		switch echoes := func(secret string) bool { return shows(value, secret) }; {
		case !shownOfAnswer[name] || slices.ContainsFunc(secrets, echoes):
			return redacted
		case name == "Location":
			return location(value)
		}
		return value
	})
	return sender.Headers(b)
}

// appendHeaders appends one side. shown returns what is shown of a value.
func appendHeaders(b []byte, all http.Header, shown func(name, value string) string) []byte {
	most, left := len(b)+maxSide, 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, value := range all[name] {
			if left > 0 {
				left++
				continue
			}
			before := len(b)
			b = append(append(b, strings.Map(ofName, name)...), ": "...)
			b = append(append(b, shortened(shown(name, value))...), '\n')
			if len(b) > most {
				b, left = b[:before], 1
			}
		}
	}
	if left > 0 {
		b = fmt.Appendf(b, "%s: %d more\n", leftOut, left)
	}
	return b
}

// shows reports whether a secret, or its beginning, is in the part of a value that is shown.
// The rest is not looked at: an answer can have many times as much as is shown.
func shows(value, secret string) bool {
	return strings.Contains(value[:min(len(value), maxValue+len(secret)-1)], secret)
}

// ofName and ofValue are for what an http.RoundTripper of the caller's returns: other
// answers have no such characters.
func ofName(r rune) rune {
	if r <= ' ' || r == ':' || r >= unicode.MaxASCII {
		return '_'
	}
	return r
}

func ofValue(r rune) rune {
	if unicode.IsControl(r) {
		return ' '
	}
	return r
}

func shortened(value string) string {
	if len(value) > maxValue {
		value = value[:maxValue] + leftOut
	}
	return strings.Map(ofValue, value) // it also replaces what is not UTF-8
}

// secretsOf returns the words of a request's values that are not shown: an endpoint may
// send them back in a header whose value is shown.
func secretsOf(request http.Header) (all []string) {
	for name, values := range request {
		if shownOfRequest[name] || name == "Accept" { // which says what an answer's Content-Type is to be
			continue
		}
		for _, value := range values {
			for word := range strings.FieldsSeq(value) {
				if len(word) >= leastSecret {
					all = append(all, word)
				}
			}
		}
	}
	return all
}

// location is a redirect's target up to its parameters, which may be tokens.
func location(value string) string {
	if i := strings.IndexAny(value, "?#;"); i >= 0 {
		value = value[:i+1] + redacted
	}
	if strings.Contains(value, "@") {
		return redacted
	}
	return value
}

// shownOfRequest are headers that the library alone sets: a subscription may not have them
// of its own.
var shownOfRequest = setOf("Content-Type", "User-Agent", "Webhook-Attempt", "Webhook-Id", "Webhook-Timestamp")

// shownOfAnswer are headers that tell who has answered, how, when, and under which number
// it is in that one's logs.
var shownOfAnswer = setOf(
	"Age", "Allow", "Cache-Control", "Connection", "Content-Encoding", "Content-Language", "Content-Length", "Content-Type",
	"Date", "Expires", "Keep-Alive", "Last-Modified", "Location", "Pragma", "Retry-After", "Server", "Server-Timing",
	"Strict-Transport-Security", "Transfer-Encoding", "Vary", "Via", "Warning",
	"Ratelimit", "Ratelimit-Limit", "Ratelimit-Policy", "Ratelimit-Remaining", "Ratelimit-Reset",
	"X-Rate-Limit-Limit", "X-Rate-Limit-Remaining", "X-Rate-Limit-Reset",
	"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset",
	"X-Correlation-Id", "X-Powered-By", "X-Request-Id", "X-Response-Time", "X-Runtime",
	"Cf-Cache-Status", "Cf-Mitigated", "Cf-Ray", "Fly-Request-Id", "X-Amz-Cf-Id", "X-Amz-Cf-Pop", "X-Amzn-Errortype", "X-Amzn-Requestid",
	"X-Amzn-Trace-Id", "X-Azure-Ref", "X-Cache", "X-Cloud-Trace-Context", "X-Envoy-Upstream-Service-Time", "X-Github-Request-Id",
	"X-Ms-Request-Id", "X-Served-By", "X-Vercel-Error", "X-Vercel-Id",
)

func setOf(names ...string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}
