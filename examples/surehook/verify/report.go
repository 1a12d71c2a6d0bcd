package verify

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/vendors"
)

// Report says for each scheme that a request's headers could be whether it verifies, or
// why not. It is printed as text, and encoded as JSON.
type Report struct {
	Method   string   `json:"method"`
	URL      string   `json:"url"`
	Bytes    int      `json:"body_bytes"`
	Notes    []string `json:"notes,omitempty"`
	Refused  string   `json:"refused,omitempty"` // why no scheme was tried
	Schemes  []Scheme `json:"schemes"`
	Verified bool     `json:"verified"` // by one of the schemes
	Senders  []string `json:"senders"`  // who signs like that
}

// Scheme is what came of one.
type Scheme struct {
	Name     string   `json:"name"`
	Verified bool     `json:"verified"`
	Lines    []string `json:"lines"` // for people
}

// Print writes the report for people.
func (r *Report) Print(out io.Writer) {
	fmt.Fprintf(out, "request: %s %q, body of %s\n", r.Method, r.URL, counted(int64(r.Bytes), "byte", "bytes"))
	for _, note := range r.Notes {
		fmt.Fprintln(out, "note:", note)
	}
	if r.Refused != "" {
		fmt.Fprintln(out, "refused:", r.Refused)
	}
	for _, s := range r.Schemes {
		verdict := "refused"
		if s.Verified {
			verdict = "verified"
		}
		fmt.Fprintf(out, "%s: %s\n", s.Name, verdict)
		for _, line := range s.Lines {
			fmt.Fprintln(out, "  "+line)
		}
	}
}

// counted is a number with the words for one and for others.
func counted(n int64, one, others string) string {
	if n == 1 {
		others = one
	}
	return fmt.Sprintf("%d %s", n, others)
}

func report(c capture, o *Options) Report {
	m := c.message
	r := Report{Method: m.Method, URL: m.URL, Bytes: len(m.Body), Notes: c.notes, Schemes: []Scheme{}, Senders: []string{}}
	url := o.url
	if url == "" {
		url = m.URL
	}
	schemes, err := candidates(m, url)
	switch {
	case err != nil:
		r.Refused = err.Error()
	case len(schemes) == 0 && whatIsCertified(m.Header)+whatIsToken(m.Header) == "":
		r.Refused = "no header of the request carries a signature that a scheme here knows"
	}
	for _, text := range []string{whatIsCertified(m.Header), whatIsToken(m.Header), whatIsWeak(m.Header)} {
		if text != "" {
			r.Notes = append(r.Notes, text)
		}
	}
	for _, c := range schemes {
		good, lines := judge(c, m, o)
		if good && c.vendor.Name != "" {
			r.Senders = append(append(r.Senders, c.vendor.Title), c.others...)
			lines = append(whoIsIt(c), lines...)
		}
		r.Verified = r.Verified || good
		r.Schemes = append(r.Schemes, Scheme{c.name, good, lines})
	}
	return r
}

// whoIsIt names the sender.
func whoIsIt(c candidate) []string {
	lines := []string{fmt.Sprintf("%s signs like that: %s", c.vendor.Title, c.vendor.Docs)}
	if len(c.others) > 0 {
		lines = append(lines, "and so do "+strings.Join(c.others, ", "))
	}
	if c.vendor.Evidence == vendors.Unverified {
		lines = append(lines, "its entry was not compared with a value of its own before: you have just done that")
	}
	if c.vendor.UnsignedBody() {
		lines = append(lines, "the signature does not cover the body: fetch what it says")
	}
	return lines
}

// judge tries a scheme with each secret alone, so that it can say which one matched.
func judge(c candidate, m signing.Message, o *Options) (good bool, lines []string) {
	s := c.scheme
	now := o.now()
	for _, n := range o.secrets {
		keys, err := keyring(c, n)
		if err != nil {
			lines = append(lines, err.Error())
			continue
		}
		v, err := verifier(s, keys, now, o.tolerance)
		if err != nil {
			lines = append(lines, n.name+": "+err.Error())
			continue
		}
		is, facts, err := v.VerifyFacts(m)
		if err == nil {
			return true, whatIsShown(s, is, facts)
		}
		for _, line := range why(s, m, keys, v, err, n, o) {
			if !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	return false, lines
}

// verifier deduplicates nothing, and need not: what it accepts has no effect here.
func verifier(s signing.Scheme, keys *signing.Keyring, now time.Time, tolerance time.Duration) (*signing.Verifier, error) {
	return signing.NewVerifier(keys, &signing.VerifierConfig{
		Schemes: []signing.Scheme{s}, Tolerance: tolerance, Deduplicated: true, UnsignedBody: true, Now: func() time.Time { return now },
	})
}

// why names the problem. If it is the timestamp, the report also says whether the
// signature was right at the time that the request states.
func why(s signing.Scheme, m signing.Message, keys *signing.Keyring, v *signing.Verifier, err error, n namedText, o *Options) (lines []string) {
	var header *signing.HeaderError
	var outside *signing.TimestampError
	switch {
	case errors.As(err, &header):
		return append([]string{err.Error()}, v.Diagnose(m)...)
	case errors.As(err, &outside):
		lines = append([]string{err.Error()}, v.Diagnose(m)...)
		then, thenErr := verifier(s, keys, outside.Timestamp, o.tolerance)
		if thenErr != nil {
			return append(lines, thenErr.Error())
		}
		_, thenErr = then.Verify(m)
		if thenErr == nil {
			return append(lines, fmt.Sprintf("but for that it verifies with %s: -at %s judges it as of its own time", n.name, outside.Timestamp.UTC().Format(time.RFC3339)))
		}
		lines = append(lines, fmt.Sprintf("nor does it verify with %s at its own time: %v", n.name, thenErr))
		return append(lines, then.Diagnose(m)...)
	}
	return append([]string{n.name + ": " + err.Error()}, v.Diagnose(m)...)
}

func whatIsShown(s signing.Scheme, is signing.Verified, facts signing.Facts) []string {
	lines := []string{"the signature was made with " + is.KeyID}
	if r, ok := s.(interface{ ReplayDefence() signing.ReplayDefence }); ok && r.ReplayDefence() == signing.DedupAlone {
		lines = append(lines, "it covers no time: everything rests on deduplication")
	} else {
		lines = append(lines, "it was made at "+is.Timestamp.UTC().Format(time.RFC3339))
	}
	// The signer may not control the terminal: hence the quotes.
	if facts.ID != "" {
		lines = append(lines, fmt.Sprintf("event id: %q", facts.ID))
	}
	if facts.Type != "" {
		lines = append(lines, fmt.Sprintf("event type: %q", facts.Type))
	}
	if facts.UnsignedID != "" {
		lines = append(lines, fmt.Sprintf("id in a header, not covered by the signature: %q", string(facts.UnsignedID)))
	}
	if facts.UnsignedType != "" {
		lines = append(lines, fmt.Sprintf("type in a header, not covered by the signature: %q", string(facts.UnsignedType)))
	}
	return lines
}
