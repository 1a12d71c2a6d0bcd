// Package canarytest finds secrets where none may be: in logs, errors, metrics, dumps
// and the files of databases, in each form in which a program may write them by
// mistake.
package canarytest

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// Cage holds the canaries of a test: values that the test gives as secrets and searches
// for afterwards.
type Cage struct {
	canaries []canary
}

type canary struct {
	name  string
	forms map[string][]byte
}

// leastBytes is the least length of a form: a shorter one could occur by chance.
const leastBytes = 8

// Add adds a secret of 12 bytes or more, with a name for messages.
func (c *Cage) Add(name string, secret []byte) {
	if len(secret) < 12 {
		panic("canarytest: a canary needs 12 bytes, or others are taken for it")
	}
	forms := map[string][]byte{
		"as it is":     secret,
		"in hex":       []byte(hex.EncodeToString(secret)),
		"in HEX":       []byte(strings.ToUpper(hex.EncodeToString(secret))),
		"in decimal":   []byte(strings.Trim(fmt.Sprintf("%d", secret), "[]")),
		"by commas":    []byte(strings.ReplaceAll(strings.Trim(fmt.Sprintf("%d", secret), "[]"), " ", ",")),
		"in Go's hex":  []byte(strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%#v", secret), "[]byte{"), "}")),
		"for a URL":    []byte(url.QueryEscape(string(secret))),
		"for a path":   []byte(url.PathEscape(string(secret))),
		"by percents":  []byte(percent(secret, "%%%02x")),
		"by PERCENTS":  []byte(percent(secret, "%%%02X")),
		"quoted by Go": []byte(strings.Trim(strconv.Quote(string(secret)), `"`)),
	}
	if quoted, err := json.Marshal(string(secret)); err == nil {
		forms["in JSON"] = bytes.Trim(quoted, `"`)
	}
	// Within longer data the same bytes have one of three texts in base64. Only the
	// digits at the edges depend on the neighbours.
	for offset := range 3 {
		text := base64.RawStdEncoding.EncodeToString(append(make([]byte, offset), secret...))
		first, last := (offset*8+5)/6, (offset+len(secret))*8/6
		inner := text[first:last]
		forms[fmt.Sprint("in base64, at ", offset)] = []byte(inner)
		forms[fmt.Sprint("in base64url, at ", offset)] = []byte(strings.NewReplacer("+", "-", "/", "_").Replace(inner))
	}
	for name, form := range forms {
		if len(form) < leastBytes {
			delete(forms, name)
		}
	}
	c.canaries = append(c.canaries, canary{name, forms})
}

func percent(b []byte, format string) string {
	var out strings.Builder
	for _, x := range b {
		fmt.Fprintf(&out, format, x)
	}
	return out.String()
}

// Find returns which canaries are in a text, and in which form.
func (c *Cage) Find(text []byte) (found []string) {
	for _, bird := range c.canaries {
		for form, pattern := range bird.forms {
			if at := bytes.Index(text, pattern); at >= 0 {
				around := text[max(0, at-60):min(len(text), at+len(pattern)+20)]
				found = append(found, fmt.Sprintf("%s, %s, in %q", bird.name, form, around))
			}
		}
	}
	return found
}

// RequireNone fails the test if a canary is in a text, except the named ones.
func (c *Cage) RequireNone(t testing.TB, where string, text []byte, but ...string) {
	t.Helper()
	for _, leak := range c.Find(text) {
		known := false
		for _, name := range but {
			known = known || strings.HasPrefix(leak, name+", ")
		}
		if !known {
			t.Errorf("%s: %s", where, leak)
		}
	}
}

// Printed returns all texts that a program can get by printing a value.
func Printed(values ...any) []byte {
	var b bytes.Buffer
	for _, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			fmt.Fprintf(&b, verb+"\n", v)
			fmt.Fprintf(&b, verb+"\n", []any{v})
		}
	}
	return b.Bytes()
}
